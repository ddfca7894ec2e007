#include <filch/api.h>

FILCH_INLINE int filch_not_in_inline_c(void)
{
    return 0;
}
