//! Bytes by tables of 256.
//!
//! Invariant: what instructions give is what the plain loop gives.
#![allow(unsafe_code)]

/// Writes the entry of each byte; the first entry is that of -128. Slices are of one length.
pub fn look_up(table: &[i8; 256], x: &[i8], out: &mut [i8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
    {
        let whole = x.len().min(out.len()) / 64 * 64;
        // SAFETY: the machine has these instructions.
        unsafe { permuted(table, &x[..whole], &mut out[..whole]) };
        return plain(table, &x[whole..], &mut out[whole..]);
    }
    plain(table, x, out);
}

fn plain(table: &[i8; 256], x: &[i8], out: &mut [i8]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = table[usize::from(x.wrapping_sub(-128) as u8)];
    }
}

/// Whole vectors of bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn permuted(table: &[i8; 256], x: &[i8], out: &mut [i8]) {
    use std::arch::x86_64::*;
    let quarters = table.as_chunks::<64>().0;
    // SAFETY: a quarter has 64 bytes.
    let load = |bytes: &[i8; 64]| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    let [a, b, c, d] = [load(&quarters[0]), load(&quarters[1]), load(&quarters[2]), load(&quarters[3])];
    for (out, x) in out.as_chunks_mut::<64>().0.iter_mut().zip(x.as_chunks::<64>().0) {
        // Numbers from 0 on are in the second half. The instruction takes seven bits of each.
        let x = load(x);
        let negative = _mm512_permutex2var_epi8(a, x, b);
        let positive = _mm512_permutex2var_epi8(c, x, d);
        let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), positive, negative);
        // SAFETY: there is room for 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), found) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn every_entry_is_found() {
        let mut random = Random::new(3);
        let table: [i8; 256] = std::array::from_fn(|_| random.below(256) as u8 as i8);
        let x: Vec<i8> = (0..700).map(|at| at as u8 as i8).collect();
        for len in [0, 1, 63, 64, 65, 256, 700] {
            let (mut have, mut want) = (vec![0; len], vec![0; len]);
            look_up(&table, &x[..len], &mut have);
            plain(&table, &x[..len], &mut want);
            assert_eq!(have, want);
            assert!(want.iter().enumerate().all(|(at, y)| *y == table[usize::from(at as u8 ^ 128)]));
        }
    }
}
