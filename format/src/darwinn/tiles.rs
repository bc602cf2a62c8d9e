//! Tile maps: where each pixel of a tiled output is in the device's buffer.
//!
//! Pixels next to each other in a row whose places are evenly spaced form a [`Run`], so a row is a handful of runs and moving it
//! needs no look at the maps per pixel. Invariant: after [`Tiles::verify`] every pixel of every run, all its channels
//! included, is inside the buffer of one execution.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::{Geometry, OutputLayout};
use crate::limits::Budget;
use crate::room;
use crate::row::Scalars;
use crate::wire::ReadError;

/// Columns of one tile whose places are evenly spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Index of the first column.
    pub x: usize,
    /// Number of columns.
    pub count: usize,
    /// Elements from one column to the next; 0 for a single one.
    pub stride: i64,
    /// The x part of the tile number.
    tile: i64,
    /// Length of the rows of the tile.
    row: i64,
    /// Start of the first column in its row.
    local: i64,
}

/// Reason maps do not describe an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TileError {
    /// A map is absent or shorter than its dimension.
    Length {
        /// Field of the layout that holds the map.
        map: &'static str,
        /// Number of entries in the map.
        have: usize,
        /// Entries needed: one per row or column of the output, or one tile.
        need: usize,
    },
    /// A pixel is in a tile that does not exist.
    Tile {
        /// Row and column.
        pixel: (usize, usize),
        /// Number of the tile that the maps give, negative or too large.
        tile: i64,
        /// Number of tiles.
        tiles: usize,
    },
    /// A pixel is outside the buffer.
    Place {
        /// Row and column.
        pixel: (usize, usize),
        /// Index of its first element in the buffer.
        at: i64,
        /// Elements the buffer has room for.
        capacity: usize,
    },
    /// Looking at the maps costs more than the limits allow, or more memory than there is.
    Budget(ReadError),
}

impl fmt::Display for TileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TileError::Length { map, have, need } => write!(f, "{map} has {have} entries, {need} are needed"),
            TileError::Tile { pixel: (y, x), tile, tiles } => {
                write!(f, "pixel ({y}, {x}) is in tile {tile} of {tiles}")
            }
            TileError::Place { pixel: (y, x), at, capacity } => {
                write!(f, "pixel ({y}, {x}) starts at element {at} of {capacity}")
            }
            TileError::Budget(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TileError {}

/// The maps of an output, as runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Tiles<'a> {
    y_tile: Scalars<'a, i32>,
    y_local: Scalars<'a, i32>,
    offsets: Scalars<'a, i32>,
    runs: Vec<Run>,
    channels: usize,
}

impl<'a> Tiles<'a> {
    /// Of maps that are as long as the dimensions.
    pub fn new(layout: &OutputLayout<'a>, geometry: &Geometry) -> Result<Self, TileError> {
        let map = |map: &Option<Scalars<'a, i32>>, name, need| {
            let map = map.clone().unwrap_or_default();
            match map.len() {
                have if have < need => Err(TileError::Length { map: name, have, need }),
                _ => Ok(map),
            }
        };
        let y_tile = map(&layout.y_coordinate_to_linear_tile_id_map, "y_coordinate_to_linear_tile_id_map", geometry.y)?;
        let x_tile = map(&layout.x_coordinate_to_linear_tile_id_map, "x_coordinate_to_linear_tile_id_map", geometry.x)?;
        let offsets = map(&layout.linearized_tile_byte_offset, "linearized_tile_byte_offset", 1)?;
        let x_local = map(&layout.x_coordinate_to_local_byte_offset, "x_coordinate_to_local_byte_offset", geometry.x)?;
        let y_local = map(&layout.y_coordinate_to_local_y_offset, "y_coordinate_to_local_y_offset", geometry.y)?;
        let x_row = map(&layout.x_coordinate_to_local_y_row_size, "x_coordinate_to_local_y_row_size", geometry.x)?;
        let columns = x_tile.iter().zip(x_row.iter()).zip(x_local.iter()).take(geometry.x);
        let mut runs: Vec<Run> = Vec::new();
        for (x, ((tile, row), local)) in columns.enumerate() {
            let (tile, row, local) = (i64::from(tile), i64::from(row), i64::from(local));
            if let Some(run) = runs.last_mut()
                && run.extend(tile, row, local)
            {
                continue;
            }
            let run = Run { x, count: 1, stride: 0, tile, row, local };
            room::push(&mut runs, run).map_err(|error| TileError::Budget(error.into()))?;
        }
        Ok(Tiles { y_tile, y_local, offsets, runs, channels: geometry.z })
    }

    /// The runs of every row, by column.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the number of tiles that rows and columns are spread over.
    pub fn used(&self) -> (usize, usize) {
        let distinct = |mut list: Vec<i64>| {
            list.sort_unstable();
            list.dedup();
            list.len()
        };
        let columns = self.runs.iter().map(|run| run.tile).collect();
        (distinct(self.y_tile.iter().map(i64::from).collect()), distinct(columns))
    }

    /// The element at which this run of row `y` starts; `None` if it is in no tile or before the buffer.
    pub fn start(&self, y: usize, run: &Run) -> Option<usize> {
        let tile = i64::from(self.y_tile.get(y)?).checked_add(run.tile)?;
        let offset = self.offsets.get(usize::try_from(tile).ok()?)?;
        usize::try_from(place(offset.into(), self.y_local.get(y)?.into(), run)).ok()
    }

    /// Checks that all pixels are inside the buffer. The cost is one look per run and per tile row with different
    /// places.
    pub fn verify(&self, geometry: &Geometry, budget: &mut Budget) -> Result<(), TileError> {
        // Rows of one tile differ by their local number only, so the outermost two decide for all.
        let mut groups: BTreeMap<i32, [(i32, usize); 2]> = BTreeMap::new();
        for (y, (tile, local)) in self.y_tile.iter().zip(self.y_local.iter()).take(geometry.y).enumerate() {
            let [low, high] = groups.entry(tile).or_insert([(local, y); 2]);
            *low = (*low).min((local, y));
            *high = (*high).max((local, y));
        }
        let looks = (groups.len() as u64).saturating_mul(self.runs.len() as u64);
        budget.charge((looks / 16).saturating_add(1), 0).map_err(TileError::Budget)?;
        for (y_tile, rows) in groups {
            for run in &self.runs {
                for (local, y) in rows {
                    let tile = i64::from(y_tile).saturating_add(run.tile);
                    let offset = usize::try_from(tile).ok().and_then(|tile| self.offsets.get(tile));
                    let Some(offset) = offset else {
                        return Err(TileError::Tile { pixel: (y, run.x), tile, tiles: self.offsets.len() });
                    };
                    self.inside(place(offset.into(), local.into(), run), y, run, geometry)?;
                }
            }
        }
        Ok(())
    }

    fn inside(&self, first: i64, y: usize, run: &Run, geometry: &Geometry) -> Result<(), TileError> {
        let steps = run.count.saturating_sub(1);
        let last = first.saturating_add(run.stride.saturating_mul(steps as i64));
        let capacity = geometry.capacity();
        let most = (capacity as i64).saturating_sub(self.channels as i64);
        for (at, x) in [(first, run.x), (last, run.x.saturating_add(steps))] {
            if at < 0 || at > most {
                return Err(TileError::Place { pixel: (y, x), at, capacity });
            }
        }
        Ok(())
    }

    /// Looks for two pixels that share elements, if the cost is in proportion; returns the first element that is
    /// shared.
    pub fn overlap(&self, geometry: &Geometry, budget: &mut Budget) -> room::Result<Option<usize>> {
        /// Elements of the largest output that is looked at: a bitmap of 4 MiB.
        const MOST: usize = 1 << 25;
        let capacity = geometry.capacity();
        let looks = (geometry.elements / 64).saturating_add(geometry.y) as u64;
        if capacity > MOST || budget.left() < looks || budget.charge(looks, 0).is_err() {
            return Ok(None);
        }
        let taken = room::filled(false, capacity)?;
        Ok(self.shared(geometry, taken))
    }

    fn shared(&self, geometry: &Geometry, mut taken: Vec<bool>) -> Option<usize> {
        for y in 0..geometry.y {
            for run in &self.runs {
                let mut at = self.start(y, run)?;
                for _ in 0..run.count {
                    let end = at.checked_add(self.channels)?;
                    for (element, taken) in (at..end).zip(taken.get_mut(at..end)?) {
                        if core::mem::replace(taken, true) {
                            return Some(element);
                        }
                    }
                    at = at.checked_add_signed(isize::try_from(run.stride).ok()?)?;
                }
            }
        }
        None
    }
}

/// 32-bit numbers only: nothing here leaves 64 bits.
fn place(offset: i64, local: i64, run: &Run) -> i64 {
    offset.saturating_add(local.saturating_mul(run.row)).saturating_add(run.local)
}

impl Run {
    /// Takes the next column in, if it continues the run.
    fn extend(&mut self, tile: i64, row: i64, local: i64) -> bool {
        if (tile, row) != (self.tile, self.row) {
            return false;
        }
        let count = self.count as i64;
        let step = local.saturating_sub(self.local);
        let fits = self.count == 1 || step == self.stride.saturating_mul(count);
        if fits {
            if self.count == 1 {
                self.stride = step;
            }
            self.count = self.count.saturating_add(1);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::Layer;
    use super::*;
    use crate::limits::Limits;

    /// 3 rows of 3 pixels of 2 channels padded to 4; rows split 2 + 1, columns 2 + 1.
    fn layout() -> OutputLayout<'static> {
        OutputLayout {
            y_coordinate_to_linear_tile_id_map: Some(vec![0, 0, 2].into()),
            x_coordinate_to_linear_tile_id_map: Some(vec![0, 0, 1].into()),
            linearized_tile_byte_offset: Some(vec![0, 16, 24, 32].into()),
            x_coordinate_to_local_byte_offset: Some(vec![0, 4, 0].into()),
            y_coordinate_to_local_y_offset: Some(vec![0, 1, 0].into()),
            x_coordinate_to_local_y_row_size: Some(vec![8, 8, 4].into()),
        }
    }

    fn geometry(size_bytes: i32) -> Geometry {
        Geometry::of(&Layer { y_dim: 3, x_dim: 3, z_dim: 2, size_bytes, ..Layer::default() }).unwrap()
    }

    fn budget() -> Budget {
        Budget::new(&Limits::hostile())
    }

    #[test]
    fn runs_follow_the_maps() {
        let geometry = geometry(40);
        let tiles = Tiles::new(&layout(), &geometry).unwrap();
        tiles.verify(&geometry, &mut budget()).unwrap();
        assert_eq!(
            tiles.runs().iter().map(|run| (run.x, run.count, run.stride)).collect::<Vec<_>>(),
            [(0, 2, 4), (2, 1, 0)]
        );
        let starts: Vec<_> = (0..3).flat_map(|y| tiles.runs().iter().map(move |run| (y, run))).collect();
        let starts: Vec<_> = starts.into_iter().map(|(y, run)| tiles.start(y, run).unwrap()).collect();
        assert_eq!(starts, [0, 16, 8, 20, 24, 32]);
        assert_eq!(tiles.used(), (2, 2));
        assert_eq!(tiles.overlap(&geometry, &mut budget()), Ok(None));
    }

    #[test]
    fn places_outside_the_buffer_are_refused() {
        let small = geometry(33);
        let error = Tiles::new(&layout(), &small).unwrap().verify(&small, &mut budget()).unwrap_err();
        assert_eq!(error, TileError::Place { pixel: (2, 2), at: 32, capacity: 33 });
        let mut negative = layout();
        negative.x_coordinate_to_local_byte_offset = Some(vec![0, -4, 0].into());
        let error = Tiles::new(&negative, &geometry(40)).unwrap().verify(&geometry(40), &mut budget()).unwrap_err();
        assert!(matches!(error, TileError::Place { pixel: (0, 1), at: -4, .. }), "{error}");
    }

    #[test]
    fn tiles_that_do_not_exist_and_short_maps_are_refused() {
        let mut few = layout();
        few.linearized_tile_byte_offset = Some(vec![0, 16, 24].into());
        let error = Tiles::new(&few, &geometry(40)).unwrap().verify(&geometry(40), &mut budget()).unwrap_err();
        assert_eq!(error, TileError::Tile { pixel: (2, 2), tile: 3, tiles: 3 });
        let mut short = layout();
        short.x_coordinate_to_local_y_row_size = Some(vec![8, 8].into());
        assert!(matches!(Tiles::new(&short, &geometry(40)), Err(TileError::Length { have: 2, need: 3, .. })));
    }

    #[test]
    fn shared_elements_are_found() {
        let mut same = layout();
        same.linearized_tile_byte_offset = Some(vec![0, 16, 25, 24].into());
        let tiles = Tiles::new(&same, &geometry(40)).unwrap();
        assert_eq!(tiles.overlap(&geometry(40), &mut budget()), Ok(Some(25)));
    }
}
