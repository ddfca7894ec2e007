/* SPDX-License-Identifier: MIT */
/*
 * Parses RFC 9112 (the head) and RFC 9110 (its fields) strictly: ambiguous input is rejected.
 */
#define _DEFAULT_SOURCE
#include "parse.h"

#include <string.h>
#include <strings.h>

/* Facts that are complete only after the last field. */
typedef struct fields {
    unsigned count, hosts, lengths;
    bool has_encoding, keep_alive, if_range;
    http_text range;
} fields;

static bool is(http_text text, const char *word)
{
    return strlen(word) == text.bytes && strncasecmp(text.at, word, text.bytes) == 0;
}

/* Move the text before `end` to `part` and drop `end`. False: `text` has no such byte. */
static bool cut(http_text *text, char end, http_text *part)
{
    const char *at = text->bytes ? memchr(text->at, end, text->bytes) : NULL;
    if (!at)
        return false;
    *part = (http_text){text->at, (size_t)(at - text->at)};
    text->bytes -= part->bytes + 1;
    text->at = at + 1;
    return true;
}

static http_text trim(http_text text)
{
    for (; text.bytes > 0 && (*text.at == ' ' || *text.at == '\t'); text.at++)
        text.bytes--;
    while (text.bytes > 0 && (text.at[text.bytes - 1] == ' ' || text.at[text.bytes - 1] == '\t'))
        text.bytes--;
    return text;
}

/* Cut off a line. It ends in CR LF, or in LF alone, as RFC 9112 allows. */
static bool cut_line(http_text *text, http_text *line)
{
    if (!cut(text, '\n', line))
        return false;
    if (line->bytes > 0 && line->at[line->bytes - 1] == '\r')
        line->bytes--;
    return true;
}

static bool is_token(http_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.at[i];
        if (c <= ' ' || c > '~' || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return text.bytes > 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Read digits. A number that does not fit becomes UINT64_MAX. */
static bool read_number(http_text text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned digit = (unsigned)(text.at[i] - '0');
        if (!is_digit(text.at[i]))
            return false;
        *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
    }
    return text.bytes > 0;
}

static int hex(char c)
{
    return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Turn the path into a file name. Decode first, so that encoded slashes and dots count, too. */
static int read_path(http_request *request, http_text raw)
{
    char *to = request->path;

    for (size_t i = 0; i < raw.bytes; i++) {
        int c = (unsigned char)raw.at[i];
        if (c == '%') {
            if (raw.bytes - i < 3 || hex(raw.at[i + 1]) < 0 || hex(raw.at[i + 2]) < 0)
                return -400;
            c = hex(raw.at[i + 1]) * 16 + hex(raw.at[i + 2]);
            i += 2;
        }
        bool begins = to == request->path || to[-1] == '/';
        if (c == 0)
            return -400;
        if (c == '.' && begins)
            request->status = 403;
        if (c != '/' || !begins)
            *to++ = (char)c;
    }
    if (to == request->path || to[-1] == '/')
        to = (char *)memcpy(to, "index.html", 10) + 10;
    *to = 0;
    return 0;
}

/* Origin form, "/path?query", or absolute form, "http://host/path?query". */
static int read_target(http_request *request, http_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.at[i] <= ' ' || text.at[i] > '~' || text.at[i] == '#')
            return -400;
    if (request->status)
        return 0; /* the target may be "*" (OPTIONS) or host and port (CONNECT) */
    if (text.bytes >= 7 && strncasecmp(text.at, "http://", 7) == 0) {
        text.at += 7;
        text.bytes -= 7;
        for (; text.bytes > 0 && *text.at != '/' && *text.at != '?'; text.at++)
            text.bytes--;
        if (text.bytes == 0)
            text = (http_text){"/", 1};
    } else if (text.bytes == 0 || *text.at != '/') {
        return -400;
    }
    if (cut(&text, '?', &request->target))
        request->query = text;
    else
        request->target = text;
    return read_path(request, request->target);
}

static int read_line(http_request *request, http_text line)
{
    static const char *const others[] = {"POST",  "PUT",   "DELETE", "OPTIONS",
                                         "PATCH", "TRACE", "CONNECT"};
    http_text method, target;

    if (!cut(&line, ' ', &method) || !cut(&line, ' ', &target) || !is_token(method))
        return -400;
    if (line.bytes != 8 || memcmp(line.at, "HTTP/", 5) != 0 || !is_digit(line.at[5]) ||
        line.at[6] != '.' || !is_digit(line.at[7]))
        return -400;
    if (line.at[5] != '1')
        return -505;
    request->is_old = line.at[7] == '0';

    /* Method names are case-sensitive. */
    request->is_head = method.bytes == 4 && memcmp(method.at, "HEAD", 4) == 0;
    if (!request->is_head && (method.bytes != 3 || memcmp(method.at, "GET", 3) != 0)) {
        request->status = 501;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strlen(others[i]) == method.bytes &&
                memcmp(method.at, others[i], method.bytes) == 0)
                request->status = 405;
    }
    return read_target(request, target);
}

static void read_connection(http_request *request, fields *seen, http_text value)
{
    for (bool is_more = true; is_more;) {
        http_text word = value;
        is_more = cut(&value, ',', &word);
        word = trim(word);
        request->is_last = request->is_last || is(word, "close");
        seen->keep_alive = seen->keep_alive || is(word, "keep-alive");
    }
}

/* Read one range. Ignore the field if it has several ranges, another unit or no valid range. */
static void read_range(http_request *request, http_text value)
{
    http_text unit, first;

    if (!cut(&value, '=', &unit) || !is(unit, "bytes") || !cut(&value, '-', &first))
        return;
    if (first.bytes == 0) {
        request->has_range = read_number(value, &request->last);
        request->first = UINT64_MAX;
        if (request->last == UINT64_MAX)
            request->last--; /* larger than any file, and below `first` */
        return;
    }
    if (!read_number(first, &request->first))
        return;
    request->last = UINT64_MAX;
    request->has_range =
        value.bytes == 0 || (read_number(value, &request->last) && request->first <= request->last);
}

static int read_field(http_request *request, fields *seen, http_text line)
{
    http_text name, value = line;
    uint64_t length;

    if (++seen->count > HTTP_FIELDS_MAX)
        return -431;
    if (!cut(&value, ':', &name) || !is_token(name))
        return -400; /* includes obsolete line folding */
    value = trim(value);
    for (size_t i = 0; i < value.bytes; i++)
        if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 127)
            return -400;

    if (is(name, "Host")) {
        seen->hosts++;
    } else if (is(name, "Connection")) {
        read_connection(request, seen, value);
    } else if (is(name, "Content-Length")) {
        if (++seen->lengths > 1 || !read_number(value, &length))
            return -400;
        /* The body of a GET is not read, so the connection cannot be reused. */
        request->is_last = request->is_last || length > 0;
    } else if (is(name, "Transfer-Encoding")) {
        seen->has_encoding = true;
    } else if (is(name, "Range")) {
        seen->range = value;
    } else if (is(name, "If-Range")) {
        seen->if_range = true;
    } else if (is(name, "If-Modified-Since")) {
        request->modified = value;
    }
    return 0;
}

static int finish(http_request *request, const fields *seen)
{
    if (seen->hosts > 1 || (seen->hosts == 0 && !request->is_old) ||
        (seen->has_encoding && seen->lengths))
        return -400;
    if (seen->has_encoding)
        return -501;
    request->is_last = request->is_last || (request->is_old && !seen->keep_alive);
    /* If-Range is not compared with the file: sending the whole file is always correct. */
    if (!request->is_head && !seen->if_range)
        read_range(request, seen->range);
    return 0;
}

static int read_head(http_request *request, http_text all)
{
    http_text text = all, line;
    fields seen = {0};
    int err;

    /* Skip up to two empty lines: a client may send them after an earlier body. */
    for (int i = 0; i < 2 && text.bytes > 0 && (*text.at == '\r' || *text.at == '\n'); i++)
        if (!cut_line(&text, &line))
            return text.bytes > 1 ? -400 : 0;
        else if (line.bytes > 0)
            return -400;
    const char *start = text.at;
    if (!cut_line(&text, &line))
        return text.bytes >= HTTP_LINE_MAX ? -414 : 0;
    if (text.at - start > HTTP_LINE_MAX)
        return -414;
    err = read_line(request, line);
    while (!err && cut_line(&text, &line)) {
        if (text.at - all.at > HTTP_HEAD_MAX)
            return -431;
        if (line.bytes == 0) {
            err = finish(request, &seen);
            return err ? err : (int)(text.at - all.at);
        }
        err = read_field(request, &seen, line);
    }
    return err ? err : all.bytes >= HTTP_HEAD_MAX ? -431 : 0;
}

int http_parse(http_request *request, const char *text, size_t bytes)
{
    memset(request, 0, offsetof(http_request, path));
    request->path[0] = 0;
    int result = read_head(request, (http_text){text, bytes});
    if (result < 0)
        request->is_last = true;
    return result;
}
