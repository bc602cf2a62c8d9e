//! Tests of sharing packed weights, of the effect of a folder on loads, and of folders that others may write to.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack_format::tensor::TensorLayout;
use edgepack_loader::{Error, MemorySource, MergedData};

use super::constants::Constants;
use super::*;

/// A map of the caller that never gives the same answer twice.
#[derive(Default)]
struct Fickle(AtomicUsize);

impl NamedDataMap for Fickle {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) as u8;
        Ok((key == "w").then(|| Bytes::from([number; 8])))
    }
    fn layout(&self, _: &str) -> Result<Option<TensorLayout>, Error> {
        Ok(None)
    }
    fn len(&self) -> usize {
        1
    }
    fn key(&self, index: usize) -> Option<&str> {
        (index == 0).then_some("w")
    }
    fn contains(&self, key: &str) -> bool {
        key == "w"
    }
}

fn program() -> Arc<dyn Source> {
    Arc::new(MemorySource::new([0u8; 8]))
}

fn packer(cache: &PackCache, folder: Option<&PackFolder>, program: &Arc<dyn Source>) -> Packer {
    let none: Arc<dyn NamedDataMap> = Arc::new(MergedData::new([]).unwrap());
    Packer::new(cache, folder, program, &[], none)
}

/// Every byte of the weights plus one, of a place.
fn pack_at(packer: &Packer, place: &str, weights: &[u8], left: &Cell<u64>) -> Result<Arc<Vec<u8>>, KernelError> {
    let weights = Bytes::from(weights);
    let count = weights.len();
    packer.pack(
        &Packing {
            place,
            weights: &weights,
            numbers: &[],
            layout: "plus one",
            sizes: &[count],
            bytes: count,
            pack: &|| Ok(weights.iter().map(|byte| byte + 1).collect()),
            content: |packed: &Vec<u8>| packed,
            restore: &|fill| {
                let mut packed = vec![0; count];
                fill(&mut packed).then_some(packed)
            },
        },
        Retained(left),
    )
}

fn pack(packer: &Packer, weights: &[u8]) -> Arc<Vec<u8>> {
    pack_at(packer, "w", weights, &Cell::new(1 << 20)).unwrap()
}

#[test]
fn constants_are_shared_by_their_place_if_what_is_made_holds_them() {
    let (cache, left) = (PackCache::new(), Cell::new(1000));
    let (packer, constant) = (packer(&cache, None, &program()), [7u8; 16]);
    let share = |name: &str, numbers: &[u8]| {
        let key = packer.key_at(&constant, Layout { name, numbers }, 100, Retained(&left)).unwrap();
        packer.made_of(key, || Ok(name.to_owned())).unwrap()
    };
    let held = ["a", "a", "b"].map(|layout| share(layout, &[]));
    assert!(Arc::ptr_eq(&held[0], &held[1]) && *held[2] == "b");
    assert_eq!((cache.packings(), packer.charged_bytes(), left.get()), (2, 200, 800));
    // Other numbers make another one.
    let scaled = [&[1][..], &[2], &[1]].map(|numbers| share("a", numbers));
    assert!(Arc::ptr_eq(&scaled[0], &scaled[2]) && !Arc::ptr_eq(&scaled[0], &scaled[1]));
    assert!(!Arc::ptr_eq(&scaled[0], &held[0]));
    assert_eq!((cache.packings(), packer.charged_bytes(), left.get()), (4, 400, 600));
    // What others cannot find is charged every time.
    (0..2).for_each(|_| packer.charge_alone(100, Retained(&left)).unwrap());
    assert_eq!((packer.charged_bytes(), left.get()), (600, 400));
}

#[test]
fn what_kernels_ask_for_is_made_once_on_any_number_of_threads_and_the_first_error_is_told() {
    // One that is large beside all of them, and ten that are not.
    let lens: Vec<usize> = (0..11).map(|number| if number == 3 { 1 << 20 } else { 40_000 + number }).collect();
    let all: Vec<Bytes> = lens.iter().map(|len| Bytes::from(vec![*len as u8; *len])).collect();
    for threads in [1, 2, 3] {
        let (cache, left) = (PackCache::new(), Cell::new(10 << 20));
        let packer = Arc::new(packer(&cache, None, &program()));
        let new_packer = || Arc::clone(&packer);
        let constants = Constants::new(&all, &new_packer);
        let ask = |constant: &[u8], fails: bool| {
            let make = move |bytes: &[u8]| {
                if fails {
                    return Err(KernelError::unsupported(bytes.len().to_string()));
                }
                Ok(bytes.to_vec())
            };
            constants.share(constant, "as it is".into(), constant.len(), Retained(&left), make).unwrap()
        };
        let make = || edgepack_compute::threads::Threads::new(threads).unwrap().run(|| constants.make());
        let shared: Vec<_> = all.iter().chain([&all[5]]).map(|bytes| ask(bytes, false)).collect();
        assert_eq!((constants.waiting(), cache.packings()), (12, 0));
        make().unwrap();
        assert!(shared.iter().zip(&all).all(|(made, bytes)| made[..] == bytes[..]));
        assert!(std::ptr::eq(&*shared[5], &*shared[11]));
        assert_eq!((constants.waiting(), cache.packings()), (0, 11));
        // A part of a constant is known by its place; what is no constant is made at once.
        let part = ask(&all[0][1..9], false);
        assert_eq!(ask(&[7; 9], false)[..], [7; 9]);
        make().unwrap();
        assert_eq!(part[..], all[0][1..9]);
        drop((shared, part));
        all.iter().enumerate().for_each(|(number, bytes)| drop(ask(bytes, [3, 6, 9].contains(&number))));
        let (number, error) = make().unwrap_err();
        assert_eq!(number, 3);
        assert!(error.to_string().contains(&lens[3].to_string()), "{error}");
    }
}

/// A source that lends its bytes until it is asked too often.
struct Wavering(Vec<u8>, AtomicUsize);

impl Source for Wavering {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
    fn borrow(&self, range: std::ops::Range<u64>) -> Option<&[u8]> {
        let left = self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.is_ok().then(|| &self.0[range.start as usize..range.end as usize])
    }
}

#[test]
fn a_source_that_no_longer_lends_a_constant_is_refused() {
    let (cache, left) = (PackCache::new(), Cell::new(1000));
    let source = Arc::new(Wavering(vec![1; 64], AtomicUsize::new(usize::MAX)));
    let all = [Bytes::lent(source.clone(), 0..64).unwrap()];
    let packer = Arc::new(packer(&cache, None, &program()));
    let new_packer = || Arc::clone(&packer);
    let constants = Constants::new(&all, &new_packer);
    constants.share(&source.0, "a".into(), 64, Retained(&left), |bytes: &[u8]| Ok(bytes.len())).unwrap();
    source.1.store(0, Ordering::Relaxed);
    let (number, error) = constants.make().unwrap_err();
    assert_eq!((number, error.code), (0, edgepack_format::finding::ErrorCode::InvalidExternalData));
}

#[test]
fn loads_of_one_program_share_and_others_do_not() {
    let (cache, program, other) = (PackCache::new(), program(), program());
    let first = pack(&packer(&cache, None, &program), &[1, 2, 3]);
    assert_eq!(*first, [2, 3, 4]);
    // A second load, with a map that claims other bytes under the key of the first one's weights.
    assert!(Arc::ptr_eq(&first, &pack(&packer(&cache, None, &program), &[1, 2, 3])));
    assert_eq!(cache.packings(), 1);
    assert_eq!(*pack(&packer(&cache, None, &other), &[9, 9, 9]), [10, 10, 10]);
    let maps: [Arc<dyn NamedDataMap>; 1] = [Arc::new(Fickle::default())];
    let with_data = Packer::new(&cache, None, &program, &maps, maps[0].clone());
    let of_data = pack(&with_data, &[7, 7, 7]);
    assert_eq!(*of_data, [8, 8, 8]);
    let again = Packer::new(&cache, None, &program, &maps, maps[0].clone());
    assert!(Arc::ptr_eq(&of_data, &pack(&again, &[7, 7, 7])));
    assert_eq!(cache.packings(), 3);
}

#[test]
fn a_new_program_in_the_place_of_an_old_one_is_another_one() {
    let cache = PackCache::new();
    let mut packed = Vec::new();
    for byte in 0..50 {
        let program = program();
        packed.push(pack(&packer(&cache, None, &program), &[byte; 5]));
    }
    assert!(packed.iter().zip(0..).all(|(packed, byte)| **packed == [byte + 1; 5]));
    drop(packed);
    assert!(cache.is_empty());
}

#[test]
fn a_key_is_asked_for_once() {
    let map = Arc::new(Fickle::default());
    let packer = Packer::new(&PackCache::new(), None, &program(), &[], map.clone());
    let answers = [(); 3].map(|()| packer.data("w").unwrap().unwrap());
    assert!(answers.iter().all(|bytes| **bytes == [0; 8]));
    assert!(packer.data("v").unwrap().is_none() && packer.data("v").unwrap().is_none());
    assert_eq!(map.0.load(Ordering::Relaxed), 2);
}

#[test]
fn a_load_is_charged_once_and_before_anything_is_read() {
    let (cache, program) = (PackCache::new(), program());
    let (load, left) = (packer(&cache, None, &program), Cell::new(10));
    let first = pack_at(&load, "w", &[1; 6], &left).unwrap();
    assert!(Arc::ptr_eq(&first, &pack_at(&load, "w", &[1; 6], &left).unwrap()));
    assert_eq!(left.get(), 4);
    assert!(pack_at(&load, "v", &[1; 6], &left).is_err());
    assert_eq!((left.get(), cache.packings()), (4, 1));
    // A second load holds them, too.
    let second = Cell::new(5);
    assert!(pack_at(&packer(&cache, None, &program), "w", &[1; 6], &second).is_err());

    let folder = tempfile::tempdir().unwrap();
    let folder = PackFolder::open(folder.path().join("packed")).unwrap();
    pack(&packer(&PackCache::new(), Some(&folder), &program), &[1; 6]);
    let poor = packer(&cache, Some(&folder), &program);
    assert!(pack_at(&poor, "u", &[1; 6], &Cell::new(5)).is_err());
}

/// A folder with the entry of some weights, and the path of that.
fn with_entry(weights: &[u8]) -> (tempfile::TempDir, PackFolder, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let folder = PackFolder::open(outer.path().join("packed")).unwrap();
    assert_eq!(packings(&folder, weights), 1);
    let entries: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    (outer, folder.clone(), entry.clone())
}

/// Number of times a fresh process packs these weights; the result is always right.
fn packings(folder: &PackFolder, weights: &[u8]) -> u64 {
    let cache = PackCache::new();
    let want: Vec<u8> = weights.iter().map(|byte| byte + 1).collect();
    assert_eq!(*pack(&packer(&cache, Some(folder), &program()), weights), want);
    cache.packings()
}

#[test]
fn a_second_load_packs_nothing() {
    let (_outer, folder, entry) = with_entry(&[5; 100]);
    assert_eq!(packings(&folder, &[5; 100]), 0);
    assert_eq!(packings(&folder, &[6; 100]), 1);
    assert_eq!((packings(&folder, &[5; 100]), packings(&folder, &[6; 100])), (0, 0));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(fs::metadata(entry).unwrap().len(), entry::HEADER as u64 + 100);
    // Two programs in one process share what has one digest.
    let cache = PackCache::new();
    let (a, b) = (program(), program());
    let both = [&a, &b].map(|program| pack(&packer(&cache, Some(&folder), program), &[5; 100]));
    assert!(Arc::ptr_eq(&both[0], &both[1]) && cache.packings() == 0);
}

#[test]
fn damaged_and_foreign_entries_are_replaced() {
    let (_outer, folder, path) = with_entry(&[5; 40]);
    let good = fs::read(&path).unwrap();
    let (_other, _, foreign) = with_entry(&[8; 40]);
    let mut long = good.clone();
    long[48..56].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut content = good.clone();
    content[entry::HEADER + 3] ^= 1;
    let bad = [Vec::new(), good[..20].to_vec(), good[..good.len() - 1].to_vec(), [&good[..], &[0]].concat(), long];
    for bad in bad.into_iter().chain([content, fs::read(foreign).unwrap()]) {
        fs::write(&path, &bad).unwrap();
        assert_eq!(packings(&folder, &[5; 40]), 1);
        assert_eq!(fs::read(&path).unwrap(), good);
        assert_eq!(packings(&folder, &[5; 40]), 0);
    }
}

#[test]
fn a_huge_entry_is_not_read() {
    let (_outer, folder, path) = with_entry(&[5; 40]);
    // A terabyte that takes no room.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(packings(&folder, &[5; 40]), 1);
    assert_eq!(fs::metadata(&path).unwrap().len(), entry::HEADER as u64 + 40);
}

#[cfg(unix)]
#[test]
fn what_is_not_a_plain_file_of_the_user_is_not_read() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (outer, folder, path) = with_entry(&[5; 40]);
    let aside = outer.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    symlink(&aside, &path).unwrap();
    assert_eq!(packings(&folder, &[5; 40]), 1);
    // The link was replaced; what it led to is as it was.
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    assert_eq!(fs::read(&aside).unwrap(), fs::read(&path).unwrap());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
    assert_eq!((packings(&folder, &[5; 40]), packings(&folder, &[5; 40])), (1, 0));

    fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!((packings(&folder, &[5; 40]), packings(&folder, &[5; 40])), (1, 0));

    // In the place of an entry there is a folder: nothing can be stored there, and that is all.
    fs::remove_file(&path).unwrap();
    fs::create_dir_all(path.join("inner")).unwrap();
    assert_eq!((packings(&folder, &[5; 40]), packings(&folder, &[5; 40])), (1, 1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "what could not be stored left nothing behind");

    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(PackFolder::open(folder.path()).is_err());
}

#[test]
fn a_folder_that_went_away_is_not_an_error() {
    let (outer, folder, _) = with_entry(&[5; 40]);
    drop(outer);
    assert_eq!(packings(&folder, &[5; 40]), 1);
}

/// `/dev/full` refuses every write, as a full disk does.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_of_writing_alone() {
    let mut full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert!(entry::write(&mut full, &[0; 32], &[1; 10]).is_err());
}

#[test]
fn many_loads_at_once_find_whole_entries() {
    let outer = tempfile::tempdir().unwrap();
    let folder = PackFolder::open(outer.path().join("packed")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|round| assert!(packings(&folder, &[round; 5000]) < 2)));
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 20);
    assert!((0..20).all(|round| packings(&folder, &[round; 5000]) == 0));
}
