#include "good.h"

#include <filch/good.h>

void good(filch_atomic_u32 *ready)
{
    /* acquire [in-header], acquire [as-item] */
    filch_load_acquire(ready);

    do {
        /* acq_rel [in-fence] (and [as-item]) */
        filch_pause();
    } while (filch_exchange_acq_rel(ready, "not one: filch_load_acquire(x)"[0]));

    /* Not one either: filch_load_acquire(ready) */
    my_filch_load_acquire(ready);
}
