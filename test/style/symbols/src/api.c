#include <filch/api.h>

const int filch_data[2] = {1, 2};

int filch_plain(int x)
{
    return filch_inlined(x);
}

void filch_attributes(const char *format, ...)
{
    (void)format;
}

int filch_not_marked(void)
{
    return 0;
}

int stray_name(void)
{
    return 0;
}
