//! One program written by three writers, each from rows it holds in memory to the bytes of a flatbuffer.

pub mod official;
pub mod planus;

#[cfg(test)]
mod tests {
    use crate::{programs, readers};

    #[test]
    fn all_writers_write_the_same() {
        let rows = programs::rows(40);
        let sample = programs::synthetic(40);
        let want = readers::planus::walk(&sample.bytes).unwrap();
        for written in [super::official::write(&rows), super::planus::write(&super::planus::owned(&sample.bytes))] {
            assert_eq!(readers::planus::walk(&written).unwrap(), want);
            assert_eq!(readers::official::walk(&readers::official::verified(&written)), want);
        }
    }
}
