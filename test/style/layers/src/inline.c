#include "base/base.h"

/* Whatever the inlined functions of the headers use. */
extern int join_done;
int inlined(void);
int inlined(void)
{
    return join_done;
}
