/* SPDX-License-Identifier: MIT */
#include "strand/exceptions.h"

#include <filch/impl/exceptions.h>

/* Of the C++ runtime (Itanium C++ ABI, 2.2.2). Weak: a program without C++ has none. */
extern filch_exceptions *__cxa_get_globals(void) __attribute__((weak));

filch_exceptions_source filch_exceptions_get = {__cxa_get_globals};

void filch_exceptions_use(void *(*get)(void))
{
    /* relaxed: code, no data. The first runtime stays: strands may have its exceptions. */
    if (!filch_load_relaxed(&filch_exceptions_get))
        filch_store_relaxed(&filch_exceptions_get, (filch_exceptions_fn *)get);
}

void filch_exceptions_take(filch_exceptions *current, filch_strand *strand, filch_exceptions *own)
{
    *own = *current;
    *current = strand->has_exceptions ? strand->exceptions : (filch_exceptions){NULL, 0};
    strand->has_exceptions = false;
}

void filch_exceptions_give(filch_exceptions *current, filch_strand *strand,
                           const filch_exceptions *own, bool has_ended)
{
    strand->has_exceptions = !has_ended && filch_exceptions_exist(current);
    strand->exceptions = *current;
    *current = *own;
}
