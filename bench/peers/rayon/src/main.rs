// SPDX-License-Identifier: MIT
//! The workloads with Rayon's `join`, `scope` and parallel iterators.
//!
//! A loop over children is a tree of joins, as usual in Rayon. The two inline tests of kernels.h
//! are repeated here; all other kernels are the C ones. Rayon's iterators have no body that takes
//! a range, so the two loops are written in Rust, element by element.

use rayon::prelude::*;
use rayon::{join, ThreadPool};
use std::ffi::c_void;
use std::hint::black_box;
use std::os::raw::{c_int, c_long};
use std::process::exit;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const QUICKSORT_CUTOFF: usize = 32;
const MATMUL_BASE: usize = 32;
const SMALL_FOR_REPEATS: usize = 1000;
const LUMPS_COUNT: c_long = 20020;
const HIDDEN_PARTS: usize = 12;
const STACK_BYTES: usize = 256 << 20;
const WARM_UP: Duration = Duration::from_millis(20);

#[repr(C)]
#[derive(Default)]
struct WakeFigures {
    median_ns: u64,
    p99_ns: u64,
    bare_median_ns: u64,
    bare_p99_ns: u64,
}

#[link(name = "filch-bench-kernels", kind = "static")]
extern "C" {
    fn quicksort_fill(values: *mut i64, count: c_long);
    fn quicksort_partition(values: *mut i64, count: c_long) -> c_long;
    fn quicksort_insertion(values: *mut i64, count: c_long);
    fn quicksort_check(values: *const i64, count: c_long) -> i64;
    fn matmul_has_size(n: c_long) -> bool;
    fn matmul_fill(a: *mut f64, b: *mut f64, c: *mut f64, n: c_long);
    fn matmul_block(a: *const f64, b: *const f64, c: *mut f64, stride: c_long);
    fn matmul_check(a: *const f64, b: *const f64, c: *const f64, n: c_long) -> i64;
    fn for_check(sum: f64) -> i64;
    fn small_for_fill(x: *mut f64, y: *mut f64, count: c_long);
    fn small_for_check(y: *const f64, count: c_long) -> i64;
    fn lumps_range(size: c_long, begin: c_long, end: c_long) -> f64;
    fn hidden_part(size: c_long, part: c_int) -> f64;
    fn hidden_await_first(workers: c_int);
    fn probe_idle(duration_ms: c_long) -> u64;
    fn probe_wake(
        sample_count: c_long,
        submit: extern "C" fn(*mut c_void),
        context: *mut c_void,
        figures: *mut WakeFigures,
    ) -> c_int;
    fn probe_wake_started();
}

fn fib(n: i64) -> i64 {
    if n < 2 {
        return n;
    }
    let (left, right) = join(|| fib(n - 1), || fib(n - 2));
    left + right
}

#[derive(Clone, Copy)]
struct Board {
    column: [i8; 16],
    size: usize,
}

fn is_safe(board: &Board, row: usize, column: usize) -> bool {
    board.column[..row].iter().enumerate().all(|(i, &other)| {
        let distance = (other as i32 - column as i32).unsigned_abs() as usize;
        distance != 0 && distance != row - i
    })
}

/// Place the queen of `row` in every safe column from `first` on.
fn place_from(board: &Board, row: usize, first: usize) -> i64 {
    let Some(column) = (first..board.size).find(|&c| is_safe(board, row, c)) else {
        return 0;
    };
    let mut next = *board;
    next.column[row] = column as i8;
    let (here, further) = join(
        || place(&next, row + 1),
        || place_from(board, row, column + 1),
    );
    here + further
}

fn place(board: &Board, row: usize) -> i64 {
    if row == board.size {
        1
    } else {
        place_from(board, row, 0)
    }
}

fn sort(values: &mut [i64]) {
    let count = values.len();
    if count <= QUICKSORT_CUTOFF {
        unsafe { quicksort_insertion(values.as_mut_ptr(), count as c_long) };
        return;
    }
    let split = unsafe { quicksort_partition(values.as_mut_ptr(), count as c_long) };
    let (left, right) = values.split_at_mut(split as usize);
    join(|| sort(left), || sort(right));
}

/// A block of a matrix. The products of one half-step write different blocks of `c`, which is
/// what makes sharing the pointers sound.
#[derive(Clone, Copy)]
struct Block {
    first: *mut f64,
    stride: usize,
}
unsafe impl Send for Block {}
unsafe impl Sync for Block {}

impl Block {
    fn quarter(self, half: usize, row: usize, column: usize) -> Block {
        let offset = row * half * self.stride + column * half;
        Block {
            first: unsafe { self.first.add(offset) },
            ..self
        }
    }
}

fn multiply(a: Block, b: Block, c: Block, n: usize) {
    if n == MATMUL_BASE {
        unsafe { matmul_block(a.first, b.first, c.first, a.stride as c_long) };
        return;
    }
    let half = n / 2;
    for k in 0..2 {
        let product = |row, column| {
            multiply(
                a.quarter(half, row, k),
                b.quarter(half, k, column),
                c.quarter(half, row, column),
                half,
            )
        };
        join(
            || join(|| product(0, 0), || product(0, 1)),
            || join(|| product(1, 0), || product(1, 1)),
        );
    }
}

fn uts_mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e3779b97f4a7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
    x ^ (x >> 31)
}

fn uts_child(parent: u64, index: usize) -> u64 {
    let first = parent.wrapping_add((index as u64 + 1).wrapping_mul(0xd1342543de82ef95));
    (0..16).fold(first, |x, _| uts_mix(x))
}

fn uts_child_count(node: u64) -> usize {
    if ((node >> 40) as u32) < 2095054 {
        8
    } else {
        0
    }
}

fn visit_children(node: u64, begin: usize, end: usize) -> i64 {
    if end - begin == 1 {
        let child = uts_child(node, begin);
        return visit(child, uts_child_count(child));
    }
    let middle = (begin + end) / 2;
    let (left, right) = join(
        || visit_children(node, begin, middle),
        || visit_children(node, middle, end),
    );
    left + right
}

fn visit(node: u64, children: usize) -> i64 {
    if children == 0 {
        1
    } else {
        1 + visit_children(node, 0, children)
    }
}

extern "C" fn submit(pool: *mut c_void) {
    let pool = unsafe { &*(pool as *const ThreadPool) };
    pool.spawn(|| unsafe { probe_wake_started() });
}

/// The result of `work` on the pool, and the nanoseconds it took.
fn timed<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> (R, u64) {
    let start = Instant::now();
    let result = pool.install(work);
    (result, start.elapsed().as_nanos() as u64)
}

fn fail_usage(problem: &str) -> ! {
    eprintln!("filch-bench-rayon: {problem}");
    eprintln!("usage: filch-bench-rayon <work> <workers> [size]");
    exit(2)
}

fn default_size(work: &str) -> Option<usize> {
    Some(match work {
        "fib" => 36,
        "nqueens" => 13,
        "quicksort" | "for" | "hidden" | "flat" => 10_000_000,
        "lumps" => 2_000_000,
        "matmul" => 1024,
        "uts" | "idle" => 2000,
        "small_for" => 10_000,
        "wake" => 1000,
        _ => return None,
    })
}

fn positive(text: &str) -> usize {
    match text.parse() {
        Ok(value) if value > 0 => value,
        _ => fail_usage(&format!("not a positive number: '{text}'")),
    }
}

fn run_quicksort(pool: &ThreadPool, size: usize) -> (i64, u64) {
    let mut values = vec![0i64; size];
    unsafe { quicksort_fill(values.as_mut_ptr(), size as c_long) };
    let ((), elapsed_ns) = timed(pool, || sort(&mut values));
    let checksum = unsafe { quicksort_check(values.as_ptr(), size as c_long) };
    (checksum, elapsed_ns)
}

fn run_matmul(pool: &ThreadPool, size: usize) -> (i64, u64) {
    if !unsafe { matmul_has_size(size as c_long) } {
        fail_usage(&format!("matmul cannot have size {size}"));
    }
    let mut matrices = [0, 1, 2].map(|_| vec![0f64; size * size]);
    let [a, b, c] = matrices.each_mut().map(|matrix| Block {
        first: matrix.as_mut_ptr(),
        stride: size,
    });
    unsafe { matmul_fill(a.first, b.first, c.first, size as c_long) };
    let ((), elapsed_ns) = timed(pool, || multiply(a, b, c, size));
    let checksum = unsafe { matmul_check(a.first, b.first, c.first, size as c_long) };
    (checksum, elapsed_ns)
}

fn run_small_for(pool: &ThreadPool, size: usize) -> (i64, u64) {
    let mut x = vec![0f64; size];
    let mut y = vec![0f64; size];
    unsafe { small_for_fill(x.as_mut_ptr(), y.as_mut_ptr(), size as c_long) };
    let ((), elapsed_ns) = timed(pool, || {
        for _ in 0..SMALL_FOR_REPEATS {
            y.par_iter_mut()
                .zip(x.par_iter())
                .for_each(|(y, x)| *y += 1e-3 * x);
        }
    });
    let checksum = unsafe { small_for_check(y.as_ptr(), size as c_long) };
    (checksum, elapsed_ns)
}

fn run_hidden(pool: &ThreadPool, size: usize, workers: usize) -> (i64, u64) {
    let part = |index| unsafe { hidden_part(size as c_long, index as c_int) };
    let part = &part;
    let (sum, elapsed_ns) = timed(pool, || {
        let mut sums = [0f64; HIDDEN_PARTS];
        let [first, hidden @ .., own] = &mut sums;
        rayon::scope(|scope| {
            scope.spawn(move |_| *first = part(0));
            unsafe { hidden_await_first(workers as c_int) };
            for (i, sum) in hidden.iter_mut().enumerate() {
                scope.spawn(move |_| *sum = part(i + 1));
            }
            *own = part(HIDDEN_PARTS - 1);
        });
        sums.iter().sum()
    });
    (unsafe { for_check(sum) }, elapsed_ns)
}

fn run_flat(pool: &ThreadPool, size: usize) -> (i64, u64) {
    let counter = AtomicI64::new(0);
    pool.scope(|scope| {
        for _ in 0..100_000 {
            scope.spawn(|_| {
                counter.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    let ((), elapsed_ns) = timed(pool, || {
        rayon::scope(|scope| {
            for _ in 0..size {
                scope.spawn(|_| black_box(()));
            }
        })
    });
    (counter.into_inner(), elapsed_ns)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() < 3 || arguments.len() > 4 {
        fail_usage("two or three arguments are needed");
    }
    let work = arguments[1].as_str();
    let Some(default_size) = default_size(work) else {
        fail_usage(&format!("unknown work '{work}'"));
    };
    let workers = positive(&arguments[2]);
    let size = arguments.get(3).map_or(default_size, |text| positive(text));
    if work == "nqueens" && size > 15 {
        fail_usage(&format!("nqueens cannot have size {size}"));
    }

    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(workers)
        .stack_size(STACK_BYTES)
        .build()
        .expect("rayon starts its threads");
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        pool.install(|| fib(20));
    }

    let (checksum, elapsed_ns) = match work {
        "fib" => timed(&pool, || fib(size as i64)),
        "nqueens" => {
            let board = Board { column: [0; 16], size };
            timed(&pool, || place(&board, 0))
        }
        "quicksort" => run_quicksort(&pool, size),
        "matmul" => run_matmul(&pool, size),
        "uts" => timed(&pool, || visit(10, size)),
        "for" => {
            let sine = |i: usize| (i as f64 * 1e-3).sin();
            let (sum, elapsed_ns) =
                timed(&pool, || (0..size).into_par_iter().map(sine).sum::<f64>());
            (unsafe { for_check(sum) }, elapsed_ns)
        }
        "small_for" => run_small_for(&pool, size),
        "lumps" => {
            let add = |i: c_long| unsafe { lumps_range(size as c_long, i, i + 1) };
            let (sum, elapsed_ns) = timed(&pool, || {
                (0..LUMPS_COUNT).into_par_iter().map(add).sum::<f64>()
            });
            (unsafe { for_check(sum) }, elapsed_ns)
        }
        "hidden" => run_hidden(&pool, size, workers),
        "flat" => run_flat(&pool, size),
        "idle" => (0, unsafe { probe_idle(size as c_long) }),
        "wake" => {
            let mut figures = WakeFigures::default();
            let context = &pool as *const ThreadPool as *mut c_void;
            let err = unsafe { probe_wake(size as c_long, submit, context, &mut figures) };
            if err != 0 {
                eprintln!("filch-bench-rayon: wake: error {}", -err);
                exit(1);
            }
            println!(
                "RESULT rayon wake {workers} {} {} {} {}",
                figures.median_ns, figures.p99_ns, figures.bare_median_ns, figures.bare_p99_ns
            );
            return;
        }
        _ => unreachable!("default_size knows every work"),
    };
    println!("RESULT rayon {work} {workers} {elapsed_ns} {checksum}");
}
