//! Pools under callers, panics, nesting and ends of any kind, in as many orders as come up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use super::*;
use crate::random::Random;

/// Number of times that something is tried: Miri takes a thousand times as long, and needs fewer orders to see a race.
fn rounds(many: usize) -> usize {
    if cfg!(miri) { many.min(2) } else { many }
}

fn pool(count: usize) -> Threads {
    Threads::new(count).unwrap()
}

/// Sums of squares by row: what a loop may get wrong is seen in them.
fn rows(share: bool, input: &[u64], out: &mut [u64]) {
    let width = input.len() / out.len();
    for_each(share, (Read(input, width), Write(out, 1)), |index, (row, out)| {
        out[0] += row.iter().map(|x| x * x).sum::<u64>() + index as u64;
    });
}

fn check_rows(rows_of: usize) {
    let input: Vec<u64> = (0..rows_of as u64 * 3).collect();
    let (mut have, mut want) = (vec![0; rows_of], vec![0; rows_of]);
    rows(true, &input, &mut have);
    rows(false, &input, &mut want);
    assert_eq!(have, want);
}

#[test]
#[cfg_attr(miri, ignore = "many elements")]
fn pieces_are_whole_units_and_cover_everything() {
    let mut out = vec![0usize; 100_003];
    pool(2).run(|| {
        for_each_piece(&mut out, 7, |start, piece| {
            assert!(start % 7 == 0 && piece.len() < 100_003);
            piece.iter_mut().enumerate().for_each(|(index, x)| *x += start + index);
        });
    });
    assert!(out.iter().enumerate().all(|(index, x)| *x == index));
    for_each_piece(&mut out[..5], 7, |start, piece| assert_eq!((start, piece.len()), (0, 5)));
    for_each_piece(&mut [0u8; 0], 7, |start, piece| assert_eq!((start, piece.len()), (0, 0)));
}

#[test]
fn pieces_of_several_lists_go_together() {
    for share in [false, true] {
        pool(2).run(|| {
            let (a, mut b, mut c) = ([1u32, 2, 3, 4, 5], [0u32; 3], [0u8; 7]);
            for_each(share, (Read(&a, 2), Write(&mut b, 1), Write(&mut c, 2)), |index, (a, b, c)| {
                b[0] = a.iter().sum();
                c.fill(index as u8 + 1);
            });
            assert_eq!((b, c), ([3, 7, 0], [1, 1, 2, 2, 0, 0, 0]));
            for_each(share, WriteAll(&mut c, 4), |index, c| c.fill((index * 10 + c.len()) as u8));
            assert_eq!(c, [4, 4, 4, 4, 13, 13, 13]);
            // Nothing to cut, and elements without a size.
            for_each(share, Write(&mut b[..0], 0), |_, _| panic!("there are none"));
            let seen = AtomicUsize::new(0);
            for_each(share, WriteAll(&mut [(); 1000], 3), |_, piece| {
                _ = seen.fetch_add(piece.len(), Ordering::Relaxed)
            });
            assert_eq!(seen.into_inner(), 1000);
        });
    }
}

#[test]
fn columns_are_disjoint_and_cover_the_matrix() {
    let mut matrix = [0usize; 7 * 11];
    for count in [1, 3] {
        pool(count).run(|| {
            for_each(true, WriteColumns(&mut matrix, 11, 4), |index, mut columns| {
                assert_eq!(columns.columns(), [4, 4, 3][index]);
                for row in 0..7 {
                    columns.row(row).iter_mut().for_each(|x| *x += 100 * row + index);
                }
            });
        });
    }
    let want = |at: usize| 2 * (100 * (at / 11) + at % 11 / 4);
    assert!(matrix.iter().enumerate().all(|(at, &x)| x == want(at)));
    for_each(true, WriteColumns(&mut matrix[..0], 11, 4), |_, columns| assert!(columns.columns() > 0));
    for_each(true, WriteColumns(&mut matrix[..0], 0, 4), |_, _| panic!("there are none"));
}

#[test]
fn the_first_error_is_the_one_of_a_single_thread() {
    for count in [1, 2, 3, 8] {
        let pool = pool(count);
        for first in 0..rounds(50) {
            let failed = pool.run(|| {
                try_for_each(true, Read(&[0u8; 50], 1), |index, _| if index >= first { Err(index) } else { Ok(()) })
            });
            assert_eq!(failed, Err(first));
        }
        assert_eq!(pool.run(|| try_for_each(true, Read(&[0u8; 50], 1), |_, _| Ok::<_, ()>(()))), Ok(()));
    }
}

/// Parts, by their ends, and a sum in `f32` that depends on them.
fn parts_and_sums(cost: Cost) -> (Vec<Range<usize>>, Vec<f32>) {
    let parts = Mutex::new(Vec::new());
    for_each_range(cost, 10_000, |range| parts.lock().unwrap().push(range));
    let mut parts = parts.into_inner().unwrap();
    parts.sort_by_key(|range| range.start);
    let mut sums = vec![0.0f32; 10_000];
    for_each_piece_at(cost, &mut sums, 3, |start, out| {
        let mut sum = 0.1;
        for (index, out) in out.iter_mut().enumerate() {
            sum = sum * 0.7 + (start + index) as f32;
            *out = sum;
        }
    });
    (parts, sums)
}

#[test]
fn parts_and_results_do_not_depend_on_the_number_of_threads() {
    for cost in [0.0, 0.5, 3.0, 100.0, 20_000.0, 1e9].map(Cost::nanoseconds) {
        let (parts, sums) = pool(1).run(|| parts_and_sums(cost));
        assert!(parts.iter().map(Range::len).sum::<usize>() == 10_000 && parts.is_sorted_by_key(|range| range.end));
        for count in [2, 3, 8] {
            assert_eq!(pool(count).run(|| parts_and_sums(cost)), (parts.clone(), sums.clone()), "{count} threads");
        }
        assert_eq!(parts_and_sums(cost), (parts, sums), "threads of the process");
    }
}

#[test]
#[cfg_attr(miri, ignore = "counts to a million")]
fn no_part_is_cheaper_than_handing_it_over() {
    for cost in [0.3, 7.0, 999.0, 50_000.0] {
        for units in [1, 2, 100, 33_333, 1_000_000] {
            let parts = Mutex::new(Vec::new());
            for_each_range(Cost::nanoseconds(cost), units, |range| parts.lock().unwrap().push(range.len()));
            let mut parts = parts.into_inner().unwrap();
            parts.sort_unstable();
            // All but what is left at the end.
            assert!(parts.len() == 1 || parts[1] as f64 * cost >= PART, "{units} of {cost} ns: {parts:?}");
        }
    }
    assert!(pool(2).run(|| Cost::nanoseconds(1e6).pays(2) && !Cost::nanoseconds(1e6).pays(1) && !pays(1000)));
    assert!(!pool(1).run(|| Cost::nanoseconds(1e6).pays(2)));
}

#[test]
#[cfg_attr(miri, ignore = "waits for threads to park")]
fn small_loops_wake_workers_together() {
    let (two, loops) = (pool(2), Cost::nanoseconds(4_500.0));
    for _ in 0..2 {
        while two.run(pool::others_are_awake) {
            thread::sleep(Duration::from_millis(2));
        }
        // Two of 9 µs are not worth waking anyone, three are, and each run counts its own.
        let shared = two.run(|| [(); 3].map(|()| loops.pays(2)));
        assert_eq!(shared, [false, false, true]);
    }
}

#[test]
fn many_threads_call_one_pool() {
    for count in [1, 2, 5] {
        let pool = pool(count);
        thread::scope(|scope| {
            for caller in 0..rounds(8) {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..rounds(60) {
                        // Inside, and of the process.
                        assert_eq!(pool.run(|| (check_rows(caller * 7 + round + 1), round).1), round);
                        check_rows(caller * 5 + round + 1);
                    }
                });
            }
        });
    }
}

#[test]
fn loops_find_workers_awake_and_asleep() {
    let mut random = Random::new(11);
    let pool = pool(4);
    let mut pauses = move || match random.below(4) {
        0 => thread::yield_now(),
        1 => thread::sleep(Duration::from_micros(random.below(300) as u64)),
        _ => (0..random.below(2000)).for_each(|_| std::hint::spin_loop()),
    };
    for round in 0..rounds(40) {
        pool.run(|| {
            for inner in 0..rounds(10) {
                check_rows(round + inner * 13 + 1);
                pauses();
            }
        });
        pauses();
    }
}

#[test]
fn a_panic_of_any_piece_reaches_the_caller_when_all_have_ended() {
    for count in [1, 2, 3, 8] {
        let pool = pool(count);
        for bad in (0..17).step_by(17 / rounds(17)) {
            let running = AtomicUsize::new(0);
            let mut out = [0u8; 17];
            let panic = catch_unwind(AssertUnwindSafe(|| {
                pool.run(|| {
                    for_each(true, Write(&mut out, 1), |index, piece| {
                        struct Ends<'a>(&'a AtomicUsize);
                        impl Drop for Ends<'_> {
                            fn drop(&mut self) {
                                self.0.fetch_sub(1, Ordering::SeqCst);
                            }
                        }
                        running.fetch_add(1, Ordering::SeqCst);
                        let _ends = Ends(&running);
                        thread::yield_now();
                        assert!(index != bad && index != bad + 1, "piece {bad}");
                        piece[0] = 1;
                    });
                });
            }));
            assert_eq!(running.into_inner(), 0);
            assert_eq!(panic.unwrap_err().downcast_ref::<String>(), Some(&format!("piece {bad}")));
            assert!(out[bad] == 0);
            // The pool goes on.
            pool.run(|| check_rows(20));
        }
    }
}

#[test]
fn a_panic_outside_of_loops_reaches_the_caller() {
    let pool = pool(2);
    for _ in 0..rounds(20) {
        let panic = catch_unwind(AssertUnwindSafe(|| pool.run(|| panic!("outside")))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"outside"));
        pool.run(|| check_rows(9));
    }
}

#[test]
fn work_goes_on_while_a_caller_unwinds() {
    struct Runs<'a>(&'a Threads, &'a AtomicU64);
    impl Drop for Runs<'_> {
        fn drop(&mut self) {
            self.1.store(self.0.run(|| (check_rows(30), 7).1), Ordering::SeqCst);
        }
    }
    let (pool, seen) = (pool(2), AtomicU64::new(0));
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let _runs = Runs(&pool, &seen);
        panic!("now");
    }));
    assert!(panic.is_err() && seen.into_inner() == 7);
}

#[test]
fn loops_inside_of_loops_stay_on_their_thread() {
    let pool = pool(3);
    pool.run(|| {
        let mut out = [0usize; 64];
        for_each(true, Write(&mut out, 1), |_, out| {
            let here = thread::current().id();
            assert_eq!(current(), 1);
            for_each(true, Read(&[0u8; 30], 1), |_, _| assert_eq!(thread::current().id(), here));
            assert_eq!(pool.run(|| thread::current().id()), here);
            out[0] = pool.run(current);
        });
        assert_eq!(out, [1; 64]);
        assert_eq!((current(), pool.run(current)), (3, 3));
    });
}

#[test]
fn pools_may_call_each_other_in_a_ring() {
    let (a, b) = (pool(1), pool(2));
    let depth = a.run(|| b.run(|| a.run(|| (check_rows(12), b.run(current)).1)));
    assert!(depth >= 1);
    // From inside a loop, too, and from both sides at once.
    thread::scope(|scope| {
        for (first, second) in [(&a, &b), (&b, &a)] {
            scope.spawn(move || {
                for _ in 0..rounds(100) {
                    first.run(|| {
                        let mut out = [0usize; 12];
                        for_each(true, Write(&mut out, 1), |index, out| out[0] = second.run(|| index + 1));
                        assert!(out.iter().enumerate().all(|(index, &x)| x == index + 1));
                    });
                }
            });
        }
    });
}

#[test]
fn one_thread_is_the_callers() {
    let here = thread::current().id();
    let one = pool(1);
    assert_eq!((one.count(), one.run(current)), (1, 1));
    one.run(|| for_each(true, Read(&[0u8; 30], 1), |_, _| assert_eq!(thread::current().id(), here)));
    pool(2).run(|| assert_eq!(one.run(current), 1, "inside of other threads too"));
}

#[test]
fn threads_of_the_process_stay_for_several_loops() {
    // Starts them, where there are several.
    check_rows(200);
    let here = thread::current().id();
    assert_eq!(together(|| (check_rows(50), thread::current().id()).1), here);
    together(|| together(|| check_rows(20)));
    let one = pool(1);
    assert_eq!(one.run(|| together(current)), 1, "others go first");
    for_each(true, Read(&[0u8; 30], 1), |_, _| assert_eq!(together(current), 1));
}

#[test]
fn pools_end_at_any_time() {
    // At once, after work with workers still awake, and with workers parked; each drop waits for its threads.
    for round in 0..rounds(60) {
        let pool = pool(round % 4 + 2);
        let shared = Arc::downgrade(&pool.0.as_ref().unwrap().shared);
        if round % 3 > 0 {
            pool.clone().run(|| check_rows(round + 1));
        }
        if round % 3 == 2 {
            thread::sleep(Duration::from_micros(200));
        }
        drop(pool);
        assert!(shared.upgrade().is_none(), "nobody serves any more");
    }
}

#[test]
fn parts_of_columns_are_those_of_the_matrix() {
    let mut matrix: Vec<usize> = (0..35).collect();
    let mut columns = Columns::all(&mut matrix, 7);
    let mut part = columns.part(1..4, 2..6);
    assert_eq!((part.rows(), part.columns()), (3, 4));
    assert_eq!(part.row(2), [23, 24, 25, 26]);
    part.part(1..2, 1..3).row(0).fill(99);
    assert_eq!(columns.row(2), [14, 15, 16, 99, 99, 19, 20]);
    assert_eq!(columns.part(5..5, 7..7).rows(), 0);
    for (rows, of_row) in [(4..6, 0..7), (0..5, 3..8)] {
        assert!(catch_unwind(AssertUnwindSafe(|| columns.part(rows, of_row).rows())).is_err());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| columns.part(1..3, 0..7).row(2).len())).is_err());
}

#[test]
fn work_aside_is_done_piece_by_piece_while_there_is_no_loop() {
    let pool = pool(2);
    for _ in 0..rounds(20) {
        let done = Arc::new(AtomicUsize::new(0));
        pool.run(|| {
            let counted = done.clone();
            aside(move || counted.fetch_add(1, Ordering::SeqCst) < 4);
            while done.load(Ordering::SeqCst) < 5 {
                check_rows(40);
                thread::yield_now();
            }
        });
        assert_eq!((done.load(Ordering::SeqCst), Arc::strong_count(&done)), (5, 1));
    }
}

#[test]
fn work_aside_ends_with_its_caller() {
    let pool = pool(2);
    for round in 0..rounds(50) {
        let done = Arc::new(AtomicUsize::new(0));
        pool.run(|| {
            for _ in 0..20 {
                let counted = done.clone();
                aside(move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    true
                });
            }
            thread::sleep(Duration::from_micros(round as u64));
        });
        // Nothing of it is left, and nothing goes on.
        assert_eq!(Arc::strong_count(&done), 1);
    }
    // Without others, and inside of a loop, there is nobody to leave it to.
    let left = Arc::new(());
    let leave = || {
        let held = left.clone();
        aside(move || Arc::strong_count(&held) > 0);
        assert_eq!(Arc::strong_count(&left), 1);
    };
    leave();
    pool.run(|| alone(leave));
    Threads::new(1).unwrap().run(leave);
}

#[test]
fn panics_aside_concern_nobody() {
    struct Bomb(Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("dropped");
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let pool = pool(2);
    for panics in [true, false] {
        pool.run(|| {
            let bomb = Bomb(dropped.clone());
            aside(move || {
                assert!(!panics && Arc::strong_count(&bomb.0) > 0, "aside");
                false
            });
        });
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
    pool.run(|| check_rows(100));
}
