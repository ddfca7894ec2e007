// SPDX-License-Identifier: MIT
// Tasks in C++ for a program in C, which loads them when strands already run.
#include <filch/filch.h>

#include <exception>
#include <stdexcept>

/* Returns 0, or -1 if the wait in its catch has changed its exceptions. */
extern "C" FILCH_API int plugin_wait(filch_frame *f, filch_event *ready, filch_event *go)
{
    if (std::current_exception() || std::uncaught_exceptions()) {
        filch_event_set(ready);
        return -1;
    }
    try {
        throw std::runtime_error("mine");
    } catch (const std::exception &e) {
        const std::exception *before = &e;
        filch_event_set(ready);
        filch_event_wait(f, go);
        try {
            throw;
        } catch (const std::exception &again) {
            return &again == before ? 0 : -1;
        }
    }
}
