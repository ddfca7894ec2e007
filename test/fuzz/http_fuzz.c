/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the parser of examples/httpd.c. For every input, it reads only the input, and its
 * result is consistent.
 *
 * `make fuzz` looks for inputs; the test http_fuzz_seeds replays those in test/fuzz/http
 * (replay.c).
 */
#include "http/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static const int refusals[] = {400, 414, 431, 501, 505};

static bool is_refusal(int status)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i] == status)
            return true;
    return false;
}

static void check_text(http_text text, const char *head, int bytes)
{
    if (text.bytes == 0 || (text.bytes == 1 && *text.at == '/'))
        return; /* "/" is also the target of http://host */
    CHECK(text.at >= head && text.at + text.bytes <= head + bytes);
    for (size_t i = 0; i < text.bytes; i++)
        CHECK(text.at[i] != '\r' && text.at[i] != '\n' && text.at[i] != 0);
}

/* The server relies on this when it opens the file. */
static void check_path(const char *path)
{
    CHECK(strlen(path) < sizeof((http_request *)0)->path);
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        CHECK(*part != 0 && *part != '/' && *part != '.');
}

static int parse(http_request *request, const char *head, size_t bytes)
{
    int result = http_parse(request, head, bytes);
    CHECK(result >= 0 ? (size_t)result <= bytes && result <= HTTP_HEAD_MAX
                      : is_refusal(-result) && request->is_last);
    CHECK(result != 0 ||
          bytes < HTTP_HEAD_MAX); /* 0, more is needed: only if the buffer has room for more */
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static http_request request, again;
    char *head = malloc(size ? size : 1); /* exactly as large as the input, for AddressSanitizer */

    if (!head)
        return 0;
    if (size)
        memcpy(head, data, size);
    int bytes = parse(&request, head, size);
    if (bytes > 0) {
        check_text(request.target, head, bytes);
        check_text(request.query, head, bytes);
        check_text(request.modified, head, bytes);
        CHECK(request.status == 0 || request.status == 403 || request.status == 405 ||
              request.status == 501);
        if (request.status == 0)
            check_path(request.path);
        CHECK(!request.has_range || !request.is_head);

        /* Bytes behind the request do not matter, and no part of it is a complete request. */
        CHECK(parse(&again, head, (size_t)bytes) == bytes);
        CHECK(memcmp(&request, &again, offsetof(http_request, path)) == 0 &&
              strcmp(request.path, again.path) == 0);
        for (int part = 0; part < bytes; part += 1 + bytes / 64)
            CHECK(parse(&again, head, (size_t)part) == 0);
        CHECK(parse(&again, head, (size_t)bytes - 1) == 0);
    } else if (bytes == 0) {
        CHECK(parse(&again, head, size / 2) == 0);
    }
    free(head);
    return 0;
}
