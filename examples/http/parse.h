/* SPDX-License-Identifier: MIT */
/*
 * The head of an HTTP/1.1 request: what a server of files has to know of it.
 *
 * It reads the bytes it is given, and calls nobody: so it is fuzzed alone (test/fuzz/http_fuzz.c).
 */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_LINE_MAX = 4096,  /* bytes of a request line, with its end */
    HTTP_HEAD_MAX = 16384, /* bytes of a head, from the request line to the empty one */
    HTTP_FIELDS_MAX = 100, /* header fields */
};

/* A part of the head. */
typedef struct http_text {
    const char *at;
    size_t bytes;
} http_text;

typedef struct http_request {
    int status;   /* 0, or why it is not to be served: 403, 405, 501. The connection may go on */
    bool is_head; /* HEAD; else GET, unless there is a status */
    bool is_old;  /* HTTP/1.0 */
    bool is_last; /* the connection is to be closed after the answer */
    http_text target;   /* as it came, from the first slash up to the query: visible ASCII */
    http_text query;    /* without its question mark */
    http_text modified; /* If-Modified-Since, or empty */

    /* Range: bytes=<first>-<last>. Of a suffix, bytes=-<last>, first is above last. */
    bool has_range;
    uint64_t first, last;

    /* Decoded, relative, never empty. No part of it between slashes is empty or begins with a dot; "index.html" stands where it ended in a slash. */
    char path[HTTP_LINE_MAX + sizeof "index.html"];
} http_request;

/*
 * Read the head at `text`. Returns how many bytes it has; 0: more are needed; or -400, -414, -431, -501, -505: where this request ends
 * cannot be known, and the connection is to be closed after that answer.
 */
int http_parse(http_request *request, const char *text, size_t bytes);

#endif
