/* SPDX-License-Identifier: MIT */
/*
 * The head of an HTTP/1.1 request, as far as a file server needs it.
 *
 * The parser only reads its input, so it can be fuzzed alone (test/fuzz/http_fuzz.c).
 */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_LINE_MAX = 4096,  /* bytes of a request line, line end included */
    HTTP_HEAD_MAX = 16384, /* bytes from the request line through the empty line */
    HTTP_FIELDS_MAX = 100, /* header fields */
};

/* A part of the head; not terminated. */
typedef struct http_text {
    const char *at;
    size_t bytes;
} http_text;

typedef struct http_request {
    int status;         /* 0, or why the request is refused: 403, 405, 501. The connection stays */
    bool is_head;       /* HEAD; otherwise GET, unless `status` is set */
    bool is_old;        /* HTTP/1.0 */
    bool is_last;       /* close the connection after the answer */
    http_text target;   /* undecoded, from the first slash up to the query: visible ASCII */
    http_text query;    /* without the question mark */
    http_text modified; /* If-Modified-Since, or empty */

    /* Range: bytes=<first>-<last>. For a suffix, bytes=-<last>, `first` is greater than `last`. */
    bool has_range;
    uint64_t first, last;

    /* Decoded, relative, never empty; "index.html" is appended after a final slash. No part between
     * slashes is empty. If `status` is 0, no part begins with a dot. */
    char path[HTTP_LINE_MAX + sizeof "index.html"];
} http_request;

/*
 * Parse the head at `text`. Returns
 *
 *     > 0   the length of the head
 *     0     the head is not complete
 *     < 0   -400, -414, -431, -501 or -505: the end of the request is unknown, so the caller must
 *           close the connection after this answer
 */
int http_parse(http_request *request, const char *text, size_t bytes);

#endif
