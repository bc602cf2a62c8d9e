//! Dimension arguments: negative ones count from the end, and a tensor of rank 0 is addressed like one of rank 1.

use edgepack_compute::indices::place;
use edgepack_executor::kernel::KernelError;

/// Dimension `dim`, given as argument `name`, of a tensor of `rank` dimensions given as `tensor`.
pub fn dim_of(name: &str, dim: i64, tensor: &str, rank: usize) -> Result<usize, KernelError> {
    let count = rank.max(1) as i64;
    let index = if dim < 0 { dim.saturating_add(count) } else { dim };
    if (0..count).contains(&index) {
        return Ok(index as usize);
    }
    Err(KernelError::argument(format!("`{name}` is {dim}, `{tensor}` has {rank} dimensions")))
}

/// Element `index`, given as argument `name`, along a dimension of `size` elements; negative ones count from the end.
pub fn index_of(name: &str, index: i64, size: usize) -> Result<usize, KernelError> {
    Ok(place(name, index, size)?)
}

/// A size given as argument `name`.
pub fn size_of(name: &str, size: i64) -> Result<usize, KernelError> {
    usize::try_from(size).map_err(|_| KernelError::argument(format!("`{name}` holds the size {size}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_dimensions_count_from_the_end() {
        assert_eq!(dim_of("dim", -1, "self", 3), Ok(2));
        assert_eq!(dim_of("dim", 0, "self", 0), Ok(0));
        assert_eq!(dim_of("dim", -1, "self", 0), Ok(0));
        let error = dim_of("dim", 5, "self", 3).unwrap_err();
        assert_eq!(error.message, "`dim` is 5, `self` has 3 dimensions");
        assert!(dim_of("dim", i64::MIN, "self", 3).is_err() && dim_of("dim", 1, "self", 0).is_err());
    }

    #[test]
    fn indices_stay_inside() {
        assert_eq!(index_of("index", -3, 3), Ok(0));
        assert!(
            index_of("index", 3, 3).is_err() && index_of("index", -4, 3).is_err() && index_of("index", 0, 0).is_err()
        );
    }
}
