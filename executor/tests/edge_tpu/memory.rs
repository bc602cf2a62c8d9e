//! Parameters: mapped once, where they are, on the chip as long as packages of their token take turns; the device's own
//! memory.

use edgepack_builder::darwinn::Layout;
use edgepack_executor::darwinn::{Buffer, Chip, Place, RunError, Runner, RunnerOptions, Simulator, TensorBytes};

use super::made::Made;
use super::{chip, expected, run_x};

#[test]
fn parameters_are_mapped_once_at_a_page_without_a_copy() {
    for layout in [Layout::Pages, Layout::Dense] {
        let (chip, package) = (chip(), Made { layout, ..Made::default() }.register());
        for executable in [0, 1] {
            let parameters = package.parameters(executable).unwrap();
            assert!((parameters.as_ptr() as usize).is_multiple_of(4096) && !parameters.is_empty());
            // Compilers' layout: those of the package itself.
            let whole = package.bytes().as_ptr_range();
            assert_eq!(whole.contains(&parameters.as_ptr()), layout == Layout::Pages);
            assert_eq!(**parameters, *package.package().unwrap().executables()[executable].parameters());
        }
        let mut runners = [Runner::new(&chip, &package).unwrap(), Runner::new(&chip, &package).unwrap()];
        for round in 0..5u8 {
            for runner in &mut runners {
                assert_eq!(run_x(runner, &[round; 5]), expected(&package, &[round; 5]));
            }
        }
        // The device refuses runs whose parameters are elsewhere than it was told.
        let mapped = chip.with_device(|device| device.mappings().to_vec());
        let parameters = mapped.iter().filter(|(_, buffer)| *buffer == Buffer::Parameter);
        assert_eq!(
            parameters.map(|(program, _)| (program.executable, program.runner)).collect::<Vec<_>>(),
            [(1, 0), (0, 0)]
        );
        // Everything else once per runner: input, output, scratch.
        assert_eq!(mapped.len(), 2 + 2 * 3);
        let [first, second] = runners;
        drop(first);
        assert_eq!(chip.with_device(|device| device.mapped()), 2 + 3);
        drop(second);
        assert_eq!(chip.with_device(|device| device.mapped()), 0);
    }
}

#[test]
fn packages_of_a_token_stay_on_the_chip_together() {
    let of = |token, seed| Made { token, seed, ..Made::default() }.register();
    let (a, b, other) = (of(7, 1), of(7, 2), of(8, 3));
    let (alone, chip) = (Made { token: 0, cached: 0, ..Made::default() }.register(), chip());
    let mut runners: Vec<_> = [&a, &b, &other, &alone].map(|package| Runner::new(&chip, package).unwrap()).into();
    let loads = || chip.with_device(|device| device.loads());
    for round in 0..4u8 {
        assert_eq!(run_x(&mut runners[0], &[round; 5]), expected(&a, &[round; 5]));
        assert_eq!(run_x(&mut runners[1], &[round; 5]), expected(&b, &[round; 5]));
    }
    assert_eq!(loads(), 2);
    assert!(chip.holds(&a) && chip.holds(&b) && !chip.holds(&other));
    // Another runner of a package, and a clone of its registration, find them there.
    let clone = a.clone();
    assert_eq!(run_x(&mut Runner::new(&chip, &clone).unwrap(), &[1; 5]), expected(&a, &[1; 5]));
    assert_eq!(loads(), 2);
    assert_eq!(run_x(&mut runners[2], &[2; 5]), expected(&other, &[2; 5]));
    assert!(!chip.holds(&a) && chip.holds(&other));
    assert_eq!(run_x(&mut runners[1], &[2; 5]), expected(&b, &[2; 5]));
    assert_eq!(loads(), 4);
    // No token: nothing stays.
    assert_eq!(run_x(&mut runners[3], &[2; 5]), expected(&alone, &[2; 5]));
    assert_eq!(run_x(&mut runners[1], &[2; 5]), expected(&b, &[2; 5]));
    assert_eq!(loads(), 5);
    // The same bytes registered again are another package, whatever address they get.
    drop(runners);
    for _ in 0..3 {
        let again = of(7, 1);
        assert_eq!(run_x(&mut Runner::new(&chip, &again).unwrap(), &[3; 5]), expected(&again, &[3; 5]));
    }
    assert_eq!(loads(), 8);
}

#[test]
fn two_devices_hold_their_own() {
    let (package, chips) = (Made::default().register(), [chip(), chip()]);
    for chip in &chips {
        assert_eq!(run_x(&mut Runner::new(chip, &package).unwrap(), &[3; 5]), expected(&package, &[3; 5]));
        assert_eq!(chip.with_device(|device| device.loads()), 1);
    }
}

#[test]
fn runners_on_threads_take_turns() {
    let of = |token, seed| Made { token, seed, ..Made::default() }.register();
    let (chip, packages) = (chip(), [of(7, 1), of(8, 2), of(7, 3)]);
    std::thread::scope(|scope| {
        for package in &packages {
            let chip = chip.clone();
            scope.spawn(move || {
                let mut runner = Runner::new(&chip, package).unwrap();
                for round in 0..100u8 {
                    assert_eq!(run_x(&mut runner, &[round; 5]), expected(package, &[round; 5]));
                }
            });
        }
    });
}

#[test]
fn buffers_go_to_the_memory_that_the_package_asks_for() {
    let package = Made { dram: true, ..Made::default() }.register();
    let plain = Made::default().register();
    let places = |runner: &Runner<'_, Simulator>| {
        runner.placements().map(|one| (one.executable, one.buffer.to_string(), one.place)).collect::<Vec<_>>()
    };
    // A device without: the host's, as the format says, or a refusal by name.
    let without = chip();
    let mut runner = Runner::new(&without, &package).unwrap();
    assert_eq!(run_x(&mut runner, &[4; 5]), expected(&package, &[4; 5]));
    assert!(runner.placements().all(|one| one.place == Place::Host));
    assert_eq!(runner.placements().filter(|one| one.wants_dram).count(), 4);
    let options = RunnerOptions::default().require_dram();
    let mut strict = Runner::with_options(&without, &package, options).unwrap();
    let error = strict.run(&[TensorBytes::new("x", [4; 5])]).unwrap_err();
    assert!(matches!(error, RunError::Dram { buffer: Buffer::Input(..) | Buffer::Parameter, free: 0, .. }), "{error}");
    // The refusal changed nothing for others.
    assert_eq!(run_x(&mut runner, &[5; 5]), expected(&package, &[5; 5]));
    let mut indifferent = Runner::with_options(&without, &plain, options).unwrap();
    assert_eq!(run_x(&mut indifferent, &[5; 5]), expected(&plain, &[5; 5]));

    // A device with room for all of it: 128 + 64 parameters, 8 + 8 activations, 64 scratch.
    let with = Chip::new(Simulator::new().with_dram(272));
    let mut runner = Runner::with_options(&with, &package, options).unwrap();
    for round in 0..3u8 {
        assert_eq!(run_x(&mut runner, &[round; 5]), expected(&package, &[round; 5]));
    }
    assert!(places(&runner).iter().all(|(.., place)| *place == Place::Dram), "{:?}", places(&runner));
    // A second runner shares the parameters there, and its activations find no room.
    let mut second = Runner::new(&with, &package).unwrap();
    assert_eq!(run_x(&mut second, &[6; 5]), expected(&package, &[6; 5]));
    let of = |place| second.placements().filter(move |one| one.place == place).map(|one| one.buffer.to_string());
    assert_eq!(of(Place::Dram).collect::<Vec<_>>(), ["parameter", "parameter"]);
    assert_eq!(of(Place::Host).collect::<Vec<_>>(), ["input:x[0]", "output:y[0]", "scratch"]);
    // What a runner leaves is there for the next.
    drop((runner, second));
    let mut third = Runner::with_options(&with, &package, options).unwrap();
    assert_eq!(run_x(&mut third, &[7; 5]), expected(&package, &[7; 5]));

    // Parameters of a package that asks for nothing stay with the host, also where there is room.
    let roomy = Chip::new(Simulator::new().with_dram(1 << 20));
    let mut runner = Runner::new(&roomy, &plain).unwrap();
    assert_eq!(run_x(&mut runner, &[7; 5]), expected(&plain, &[7; 5]));
    let own: Vec<_> = places(&runner).into_iter().filter(|(.., place)| *place == Place::Dram).collect();
    assert_eq!(own, [(0, "scratch".to_owned(), Place::Dram)]);
}
