#include <filch/public.h>
