/* SPDX-License-Identifier: MIT */
/*
 * The model allows what C11 (as RC11) allows, and forbids what it forbids.
 *
 * Each test is a few threads and an outcome. An ALLOWED outcome must occur in some execution, a
 * FORBIDDEN one in none. Some tests have their names from the papers.
 */
#include "mc/mc.h"

#include <filch/atomic.h>
#include <stdio.h>

enum { rlx = __ATOMIC_RELAXED, acq = __ATOMIC_ACQUIRE, rel = __ATOMIC_RELEASE };
enum { ar = __ATOMIC_ACQ_REL, sc = __ATOMIC_SEQ_CST };
typedef enum verdict { ALLOWED, FORBIDDEN } verdict;

static filch_atomic_u32 x, y, z;
static unsigned r[8];
static MC_KEEP uint64_t hits;

#define W(word, value, order) MC_STORE(&word, value, order)
#define R(word, order) MC_LOAD(&word, order)
#define ADD(word, value, order) MC_MODIFY(&word, MC_ADD, value, order)
#define SWAP(word, value, order) MC_MODIFY(&word, MC_EXCHANGE, value, order)
#define FENCE(order) mc_fence(order, MC_SITE("fence"))
#define CAS(word, from, to, order, failure) cas(&word, from, to, order, failure)

static unsigned seen_by_cas[MC_THREADS_MAX];

static bool cas(filch_atomic_u32 *word, uint32_t from, uint32_t to, int order, int failure)
{
    bool done = MC_CAS(word, &from, to, order, failure);
    seen_by_cas[mc_self()] = from;
    return done;
}

typedef struct litmus {
    const char *name;
    verdict verdict;
    bool (*outcome)(void);
    void (*threads[5])(void);
} litmus;

#define OUTCOME(name, condition)                                                                   \
    static bool name(void)                                                                         \
    {                                                                                              \
        return condition;                                                                          \
    }
#define THREAD(name, ...)                                                                          \
    static void name(void)                                                                         \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }
/* clang-format off */

/* Store buffering: can both threads miss the other's store? */
OUTCOME(sb, r[0] == 0 && r[1] == 0)
THREAD(sb_rlx_1, W(x, 1, rlx); r[0] = R(y, rlx))      THREAD(sb_rlx_2, W(y, 1, rlx); r[1] = R(x, rlx))
THREAD(sb_ra_1, W(x, 1, rel); r[0] = R(y, acq))       THREAD(sb_ra_2, W(y, 1, rel); r[1] = R(x, acq))
THREAD(sb_sc_1, W(x, 1, sc); r[0] = R(y, sc))         THREAD(sb_sc_2, W(y, 1, sc); r[1] = R(x, sc))
THREAD(sb_rmw_1, SWAP(x, 1, ar); r[0] = R(y, rlx))    THREAD(sb_rmw_2, SWAP(y, 1, ar); r[1] = R(x, rlx))
THREAD(sb_scrmw_1, ADD(x, 1, sc); r[0] = R(y, sc))    THREAD(sb_scrmw_2, ADD(y, 1, sc); r[1] = R(x, sc))
THREAD(sb_f_1, W(x, 1, rlx); FENCE(sc); r[0] = R(y, rlx))
THREAD(sb_f_2, W(y, 1, rlx); FENCE(sc); r[1] = R(x, rlx))
THREAD(sb_far_1, W(x, 1, rlx); FENCE(ar); r[0] = R(y, rlx))
THREAD(sb_far_2, W(y, 1, rlx); FENCE(ar); r[1] = R(x, rlx))

THREAD(sb_rel_1, W(x, 1, rel); r[0] = R(y, sc))
THREAD(sb_rfi_1, W(x, 1, rlx); (void)R(x, sc); r[0] = R(y, sc))
THREAD(sb_rfi_2, W(y, 1, rlx); (void)R(y, sc); r[1] = R(x, sc))

/* Message passing: the flag is seen, the message not. */
OUTCOME(mp, r[0] == 1 && r[1] == 0)
THREAD(mp_rlx_1, W(x, 1, rlx); W(y, 1, rlx))          THREAD(mp_rlx_2, r[0] = R(y, rlx); r[1] = R(x, rlx))
THREAD(mp_ra_1, W(x, 1, rlx); W(y, 1, rel))           THREAD(mp_ra_2, r[0] = R(y, acq); r[1] = R(x, rlx))
THREAD(mp_f_1, W(x, 1, rlx); FENCE(rel); W(y, 1, rlx))
THREAD(mp_f_2, r[0] = R(y, rlx); FENCE(acq); r[1] = R(x, rlx))
THREAD(mp_sc_1, W(x, 1, sc); W(y, 1, sc))             THREAD(mp_sc_2, r[0] = R(y, sc); r[1] = R(x, sc))
THREAD(mp_sc_rlx_1, W(x, 1, sc); W(y, 1, rlx))        THREAD(mp_rlx_sc_2, r[0] = R(y, rlx); r[1] = R(x, sc))
THREAD(mp_sc_rel_1, W(x, 1, sc); W(y, 1, rel))        THREAD(mp_sc_swap_1, W(x, 1, sc); SWAP(y, 1, acq))
THREAD(mp_rlx_sc_1, W(x, 1, rlx); W(y, 1, sc))
THREAD(mp_rmw_2, r[0] = ADD(y, 1, acq); r[1] = R(x, rlx))
THREAD(mp_wrong_f_1, FENCE(rel); W(x, 1, rlx); W(y, 1, rlx))

/* Load buffering: values out of the future. */
OUTCOME(lb, r[0] == 1 && r[1] == 1)
THREAD(lb_1, r[0] = R(x, rlx); W(y, 1, rlx))          THREAD(lb_2, r[1] = R(y, rlx); W(x, 1, rlx))

/* Coherence of one word. */
OUTCOME(corr, r[0] == 2 && r[1] == 1)
THREAD(corr_1, W(x, 1, rlx); W(x, 2, rlx))            THREAD(corr_2, r[0] = R(x, rlx); r[1] = R(x, rlx))
OUTCOME(corr0, r[0] == 1 && r[1] == 0)
OUTCOME(cowr, r[0] == 0)
THREAD(cowr_1, W(x, 1, rlx); r[0] = R(x, rlx))        THREAD(nothing, (void)0)
OUTCOME(corw, r[0] == 1 && r[1] == 2 && x.filch_value == 1)
THREAD(corw_1, r[0] = R(x, rlx); W(x, 2, rlx))        THREAD(corw_2, W(x, 1, rlx); r[1] = R(x, rlx))
OUTCOME(coww, x.filch_value == 1)
THREAD(corr_3, r[2] = R(x, rlx); r[3] = R(x, rlx))
OUTCOME(corr_two, r[0] == 1 && r[1] == 2 && r[2] == 2 && r[3] == 1)
THREAD(w_x1, W(x, 1, rlx))                            THREAD(w_x2, W(x, 2, rlx))
THREAD(cohb_2, r[0] = R(x, rlx); W(y, 1, rel))        THREAD(cohb_3, r[1] = R(y, acq); r[2] = R(x, rlx))

/* Independent readers of independent writes. */
OUTCOME(iriw, r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0)
THREAD(w_x, W(x, 1, rel))                             THREAD(w_y, W(y, 1, rel))
THREAD(iriw_3, r[0] = R(x, acq); r[1] = R(y, acq))    THREAD(iriw_4, r[2] = R(y, acq); r[3] = R(x, acq))
THREAD(wsc_x, W(x, 1, sc))                            THREAD(wsc_y, W(y, 1, sc))
THREAD(isc_3, r[0] = R(x, sc); r[1] = R(y, sc))       THREAD(isc_4, r[2] = R(y, sc); r[3] = R(x, sc))
THREAD(iacq_3, r[0] = R(x, acq); r[1] = R(y, sc))     THREAD(iacq_4, r[2] = R(y, acq); r[3] = R(x, sc))
THREAD(if_3, r[0] = R(x, rlx); FENCE(sc); r[1] = R(y, rlx))
THREAD(if_4, r[2] = R(y, rlx); FENCE(sc); r[3] = R(x, rlx))

/* Write to read causality, read to write causality. */
OUTCOME(wrc, r[0] == 1 && r[1] == 1 && r[2] == 0)
THREAD(wrc_2, r[0] = R(x, rlx); W(y, 1, rel))         THREAD(wrc_3, r[1] = R(y, acq); r[2] = R(x, rlx))
THREAD(wrc_rlx_2, r[0] = R(x, rlx); W(y, 1, rlx))     THREAD(wrc_rlx_3, r[1] = R(y, rlx); r[2] = R(x, rlx))
OUTCOME(rwc, r[0] == 1 && r[1] == 0 && r[2] == 0)
THREAD(rwc_2, r[0] = R(x, acq); r[1] = R(y, acq))     THREAD(rwc_3, W(y, 1, rel); r[2] = R(x, acq))
THREAD(rwc_f_2, r[0] = R(x, rlx); FENCE(sc); r[1] = R(y, rlx))
THREAD(rwc_f_3, W(y, 1, rlx); FENCE(sc); r[2] = R(x, rlx))
THREAD(rwc_sc_2, r[0] = R(x, sc); r[1] = R(y, sc))    THREAD(rwc_sc_3, W(y, 1, sc); r[2] = R(x, sc))
THREAD(wrwc_1, W(z, 1, rlx); W(x, 1, rel))            THREAD(wrwc_2, r[0] = R(x, acq); FENCE(sc); r[1] = R(y, rlx))
THREAD(wrwc_3, W(y, 1, rlx); FENCE(sc); r[2] = R(z, rlx))
THREAD(wrwc_sc_1, W(z, 1, sc); W(x, 1, rel))          THREAD(wrwc_sc_2, r[0] = R(x, acq); r[1] = R(y, sc))
THREAD(wrwc_sc_3, W(y, 1, sc); r[2] = R(z, sc))

/* S and R: where a store ends up among others. */
OUTCOME(s, r[0] == 1 && x.filch_value == 2)
THREAD(s_1, W(x, 2, rlx); W(y, 1, rel))               THREAD(s_2, r[0] = R(y, acq); W(x, 1, rlx))
OUTCOME(rr, y.filch_value == 2 && r[0] == 0)
THREAD(r_1, W(x, 1, sc); W(y, 1, sc))                 THREAD(r_2, W(y, 2, sc); r[0] = R(x, sc))
THREAD(r_rlx_1, W(x, 1, rlx); W(y, 1, rlx))           THREAD(r_rlx_2, W(y, 2, rlx); r[0] = R(x, rlx))
THREAD(r_rel_1, W(x, 1, sc); W(y, 1, rel))
THREAD(r_f_1, W(x, 1, rlx); FENCE(sc); W(y, 1, rlx))  THREAD(r_f_2, W(y, 2, rlx); FENCE(sc); r[0] = R(x, rlx))
OUTCOME(w22, x.filch_value == 1 && y.filch_value == 1)
THREAD(w22_1, W(x, 1, rlx); W(y, 2, rlx))             THREAD(w22_2, W(y, 1, rlx); W(x, 2, rlx))
THREAD(w22_rel_2, W(y, 1, rel); W(x, 2, sc))
THREAD(w22_f_1, W(x, 1, rlx); FENCE(sc); W(y, 2, rlx))
THREAD(w22_f_2, W(y, 1, rlx); FENCE(sc); W(x, 2, rlx))
THREAD(w22_sc_1, W(x, 1, sc); W(y, 2, sc))            THREAD(w22_sc_2, W(y, 1, sc); W(x, 2, sc))

/* Dekker's, with one access and one fence. */
THREAD(dekker_1, W(x, 1, sc); r[0] = R(y, sc))        THREAD(dekker_2, W(y, 1, rlx); FENCE(sc); r[1] = R(x, rlx))
THREAD(dekker_rlx_2, W(y, 1, sc); r[1] = R(x, rlx))

/* Release sequences. */
OUTCOME(rs, r[0] == 2 && r[1] == 0)
THREAD(rs_1, W(x, 1, rlx); W(y, 1, rel))              THREAD(rs_2, ADD(y, 1, rlx))
THREAD(rs_3, r[0] = R(y, acq); r[1] = R(x, rlx))
THREAD(rs_broken_2, if (R(y, rlx) == 1) W(y, 2, rlx)) THREAD(rs_own_1, W(x, 1, rlx); W(y, 1, rel); W(y, 2, rlx))
THREAD(rs_cas_2, CAS(y, 1, 2, rlx, rlx))

/* Read-modify-writes are atomic. */
OUTCOME(lost_add, x.filch_value != 2)
THREAD(add_1, ADD(x, 1, rlx))
OUTCOME(two_winners, r[0] == 1 && r[1] == 1)
THREAD(win_1, r[0] = CAS(x, 0, 1, rlx, rlx))          THREAD(win_2, r[1] = CAS(x, 0, 2, rlx, rlx))

/* A failed CAS is a load with its failure order, and may read an old store. */
OUTCOME(cas_fails, r[0] == 1 && r[1] == 0)
THREAD(cas_acq_2, r[0] = !CAS(y, 0, 2, rlx, acq); r[1] = R(x, rlx))
THREAD(cas_rlx_2, r[0] = !CAS(y, 0, 2, acq, rlx); r[1] = R(x, rlx))
OUTCOME(cas_stale, r[0] == 1 && r[1] == 0 && r[2] == 0)
THREAD(cas_stale_2, r[0] = R(y, rlx); r[1] = CAS(x, 7, 8, rlx, rlx); r[2] = seen_by_cas[mc_self()])
OUTCOME(cas_fails_equal, r[0] == 0)
THREAD(cas_equal, r[0] = CAS(x, 0, 1, rlx, rlx))

/* Happens-before orders seq_cst accesses of different words only if it begins and ends at still
 * other words. It does not if the second thread's access is at the word that it learns from (Lahav
 * et al., PLDI 2017). */
OUTCOME(z6u, r[0] == 1 && r[1] == 3 && r[2] == 0)
THREAD(z6u_1, W(x, 1, sc); W(y, 1, rel))              THREAD(z6u_2, r[0] = ADD(y, 1, sc); r[1] = R(y, rlx))
THREAD(z6u_3, W(y, 3, sc); r[2] = R(x, sc))
OUTCOME(z6, r[0] == 1 && z.filch_value == 3 && r[2] == 0)
THREAD(z6_2, r[0] = R(y, acq); W(z, 1, sc))           THREAD(z6_3, W(z, 3, sc); r[2] = R(x, sc))
THREAD(z6_rlx_1, W(x, 1, sc); W(y, 1, rlx))
THREAD(z6_same_1, W(x, 1, sc); W(x, 2, rel))          THREAD(z6_same_2, r[0] = R(x, acq) == 2; W(z, 1, sc))
THREAD(z6_near_1, W(x, 1, sc); FENCE(rel); W(x, 2, rlx))

static const litmus tests[] = {
    {"SB relaxed", ALLOWED, sb, {sb_rlx_1, sb_rlx_2}},
    {"SB release, acquire", ALLOWED, sb, {sb_ra_1, sb_ra_2}},
    {"SB seq_cst", FORBIDDEN, sb, {sb_sc_1, sb_sc_2}},
    {"SB acq_rel exchange", ALLOWED, sb, {sb_rmw_1, sb_rmw_2}},
    {"SB seq_cst add", FORBIDDEN, sb, {sb_scrmw_1, sb_scrmw_2}},
    {"SB seq_cst fences", FORBIDDEN, sb, {sb_f_1, sb_f_2}},
    {"SB acq_rel fences", ALLOWED, sb, {sb_far_1, sb_far_2}},
    {"Dekker seq_cst x fence", FORBIDDEN, sb, {dekker_1, dekker_2}},
    {"Dekker one load relaxed", ALLOWED, sb, {dekker_1, dekker_rlx_2}},
    {"SB one store release", ALLOWED, sb, {sb_rel_1, sb_sc_2}},
    {"SB relaxed, read back", ALLOWED, sb, {sb_rfi_1, sb_rfi_2}},
    {"MP relaxed", ALLOWED, mp, {mp_rlx_1, mp_rlx_2}},
    {"MP release, acquire", FORBIDDEN, mp, {mp_ra_1, mp_ra_2}},
    {"MP release, relaxed", ALLOWED, mp, {mp_ra_1, mp_rlx_2}},
    {"MP relaxed, acquire", ALLOWED, mp, {mp_rlx_1, mp_ra_2}},
    {"MP fences", FORBIDDEN, mp, {mp_f_1, mp_f_2}},
    {"MP fence, acquire", FORBIDDEN, mp, {mp_f_1, mp_ra_2}},
    {"MP release, fence", FORBIDDEN, mp, {mp_ra_1, mp_f_2}},
    {"MP fence too early", ALLOWED, mp, {mp_wrong_f_1, mp_ra_2}},
    {"MP seq_cst", FORBIDDEN, mp, {mp_sc_1, mp_sc_2}},
    {"MP seq_cst, flag relaxed", ALLOWED, mp, {mp_sc_rlx_1, mp_sc_2}},
    {"MP seq_cst, flag not released", ALLOWED, mp, {mp_sc_swap_1, mp_sc_2}},
    {"MP seq_cst, flag released", FORBIDDEN, mp, {mp_sc_rel_1, mp_sc_2}},
    {"MP seq_cst, flag read relaxed", ALLOWED, mp, {mp_sc_1, mp_rlx_sc_2}},
    {"MP seq_cst, message relaxed", FORBIDDEN, mp, {mp_rlx_sc_1, mp_sc_2}},
    {"MP release, acquiring add", FORBIDDEN, mp, {mp_ra_1, mp_rmw_2}},
    {"LB relaxed", FORBIDDEN, lb, {lb_1, lb_2}},
    {"CoRR", FORBIDDEN, corr, {corr_1, corr_2}},
    {"CoRR initial", FORBIDDEN, corr0, {w_x1, corr_2}},
    {"CoWR", FORBIDDEN, cowr, {cowr_1, nothing}},
    {"CoRW", FORBIDDEN, corw, {corw_1, corw_2}},
    {"CoWW", FORBIDDEN, coww, {corr_1, nothing}},
    {"CoRR two readers", FORBIDDEN, corr_two, {w_x1, w_x2, corr_2, corr_3}},
    {"CoRR over release", FORBIDDEN, wrc, {w_x1, cohb_2, cohb_3}},
    {"IRIW release, acquire", ALLOWED, iriw, {w_x, w_y, iriw_3, iriw_4}},
    {"IRIW seq_cst", FORBIDDEN, iriw, {wsc_x, wsc_y, isc_3, isc_4}},
    {"IRIW seq_cst fences", FORBIDDEN, iriw, {w_x, w_y, if_3, if_4}},
    {"IRIW seq_cst reads", ALLOWED, iriw, {w_x, w_y, isc_3, isc_4}},
    {"IRIW-acq-sc", ALLOWED, iriw, {wsc_x, wsc_y, iacq_3, iacq_4}},
    {"IRIW one reader acquires", ALLOWED, iriw, {wsc_x, wsc_y, isc_3, iacq_4}},
    {"IRIW one writer releases", ALLOWED, iriw, {wsc_x, w_y, isc_3, isc_4}},
    {"WRC release, acquire", FORBIDDEN, wrc, {w_x1, wrc_2, wrc_3}},
    {"WRC relaxed", ALLOWED, wrc, {w_x1, wrc_rlx_2, wrc_rlx_3}},
    {"RWC release, acquire", ALLOWED, rwc, {w_x, rwc_2, rwc_3}},
    {"RWC+syncs", FORBIDDEN, rwc, {w_x1, rwc_f_2, rwc_f_3}},
    {"RWC fence x seq_cst", ALLOWED, rwc, {w_x1, rwc_f_2, rwc_sc_3}},
    {"RWC fence x seq_cst, release", FORBIDDEN, rwc, {w_x, rwc_f_2, rwc_sc_3}},
    {"RWC seq_cst x fence", ALLOWED, rwc, {w_x, rwc_sc_2, rwc_f_3}},
    {"RWC all seq_cst x fence", FORBIDDEN, rwc, {wsc_x, rwc_sc_2, rwc_f_3}},
    {"W+RWC", FORBIDDEN, rwc, {wrwc_1, wrwc_2, wrwc_3}},
    {"W+RWC seq_cst", FORBIDDEN, rwc, {wrwc_sc_1, wrwc_sc_2, wrwc_sc_3}},
    {"RWC seq_cst", FORBIDDEN, rwc, {wsc_x, rwc_sc_2, rwc_sc_3}},
    {"S release, acquire", FORBIDDEN, s, {s_1, s_2}},
    {"R relaxed", ALLOWED, rr, {r_rlx_1, r_rlx_2}},
    {"R seq_cst", FORBIDDEN, rr, {r_1, r_2}},
    {"R one store release", ALLOWED, rr, {r_rel_1, r_2}},
    {"R seq_cst fences", FORBIDDEN, rr, {r_f_1, r_f_2}},
    {"2+2W relaxed", ALLOWED, w22, {w22_1, w22_2}},
    {"2+2W seq_cst", FORBIDDEN, w22, {w22_sc_1, w22_sc_2}},
    {"2+2W one store release", ALLOWED, w22, {w22_sc_1, w22_rel_2}},
    {"2+2W seq_cst fences", FORBIDDEN, w22, {w22_f_1, w22_f_2}},
    {"Z6.U", ALLOWED, z6u, {z6u_1, z6u_2, z6u_3}},
    {"Z6 over another word", FORBIDDEN, z6, {z6u_1, z6_2, z6_3}},
    {"Z6 over another word, relaxed", ALLOWED, z6, {z6_rlx_1, z6_2, z6_3}},
    {"Z6 over the same word", ALLOWED, z6, {z6_same_1, z6_same_2, z6_3}},
    {"Z6 over the same word, fence", FORBIDDEN, z6, {z6_near_1, z6_same_2, z6_3}},
    {"release sequence: add", FORBIDDEN, rs, {rs_1, rs_2, rs_3}},
    {"release sequence: CAS", FORBIDDEN, rs, {rs_1, rs_cas_2, rs_3}},
    {"release sequence: other store", ALLOWED, rs, {rs_1, rs_broken_2, rs_3}},
    {"release sequence: own store", ALLOWED, rs, {rs_own_1, rs_3}},
    {"add is atomic", FORBIDDEN, lost_add, {add_1, add_1}},
    {"CAS has one winner", FORBIDDEN, two_winners, {win_1, win_2}},
    {"CAS fails with acquire", FORBIDDEN, cas_fails, {mp_ra_1, cas_acq_2}},
    {"CAS fails with relaxed", ALLOWED, cas_fails, {mp_ra_1, cas_rlx_2}},
    {"CAS fails on an old store", ALLOWED, cas_stale, {mp_rlx_1, cas_stale_2}},
    {"CAS does not fail on its value", FORBIDDEN, cas_fails_equal, {cas_equal, nothing}},
};
/* clang-format on */

static const litmus *current;

static void finish(void)
{
    hits += current->outcome();
}

static mc_result run(const litmus *test, bool no_reduction, uint64_t *seen)
{
    mc_options options = {.no_reduction = no_reduction};
    mc_program program = {.name = test->name, .finish = finish};

    for (int i = 0; test->threads[i]; i++)
        program.threads[i] = test->threads[i];
    current = test;
    hits = 0;
    mc_result result = mc_run(&program, &options);
    *seen = hits;
    return result;
}

int main(void)
{
    static const char *const names[] = {"allowed", "forbidden"};
    int wrong = 0;

    for (unsigned i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        uint64_t seen, seen_unreduced;
        mc_result reduced = run(&tests[i], false, &seen);
        mc_result all = run(&tests[i], true, &seen_unreduced);
        bool ok = (seen > 0) == (tests[i].verdict == ALLOWED) &&
                  (seen > 0) == (seen_unreduced > 0) && reduced.verdict == MC_OK &&
                  all.verdict == MC_OK;
        printf("%-32s %-9s seen in %4llu of %5llu executions, unreduced %5llu of %8llu  %s\n",
               tests[i].name, names[tests[i].verdict], (unsigned long long)seen,
               (unsigned long long)reduced.executions, (unsigned long long)seen_unreduced,
               (unsigned long long)all.executions, ok ? "ok" : "WRONG");
        wrong += !ok;
    }
    printf("%zu tests, %d wrong\n", sizeof tests / sizeof tests[0], wrong);
    return wrong > 0;
}
