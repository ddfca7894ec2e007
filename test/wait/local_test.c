/* SPDX-License-Identifier: MIT */
/*
 * Task-local values: forked and spawned tasks inherit them.
 */
#include "scope_support.h"

static const filch_key user = {"user"}, request = {"request"};

static void expect_in_fork(filch_frame *f, void *arg)
{
    uintptr_t *values = arg;
    spin(300);
    CHECK(filch_local_get(f, &user) == (void *)values[0]);
    CHECK(filch_local_get(f, &request) == (void *)values[1]);
}

static int expect_in_task(filch_frame *f, void *arg)
{
    expect_in_fork(f, arg);
    filch_yield(f);
    expect_in_fork(f, arg);
    return 0;
}

static void bind_and_fork(filch_frame *f, void *arg)
{
    uintptr_t none[] = {0, 0}, one[] = {7, 0}, both[] = {7, 9};
    filch_binding first, second;
    filch_scope scope;
    (void)arg;

    open_with(&scope, f, (filch_scope_options){0});
    for (int round = 0; round < 300 / TEST_SLOWNESS; round++) {
        filch_slot *outer = f;
        f = filch_fork(f, expect_in_fork, none);
        filch_local_bind(f, &first, &user, (void *)7);
        filch_frame *mark = f;
        f = filch_fork(f, expect_in_fork, one);
        filch_local_bind(f, &second, &request, (void *)9);
        filch_slot *inner = f;
        f = filch_fork(f, expect_in_fork, both);
        f = filch_fork(f, expect_in_fork, both);
        CHECK(filch_scope_spawn_copy(f, &scope, expect_in_task, both, sizeof both) == 0);
        f = filch_join(f, inner);
        filch_local_unbind(f, &second);
        expect_in_fork(f, one);
        CHECK(filch_scope_spawn_copy(f, &scope, expect_in_task, one, sizeof one) == 0);
        f = filch_join(f, mark);
        filch_local_unbind(f, &first);
        f = filch_join(f, outer);
        expect_in_fork(f, none);
    }
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_local_get(NULL, &user) == NULL);
    filch_local_bind(NULL, &first, &user, (void *)7);
    CHECK(filch_local_get(NULL, &user) == NULL);
    filch_local_unbind(NULL, &first);
}

TEST(a_task_sees_the_values_that_were_bound_when_it_was_forked)
{
    on_pools(bind_and_fork, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_sees_the_values_that_were_bound_when_it_was_forked),
    };
    return cmocka_run_group_tests_name("local", tests, watchdog_start, watchdog_stop);
}
