#define FILCH_INLINE __attribute__((visibility("default")))
#include <filch/api.h>
