//! Pictures, PNG and JPEG, as rows of pixels of three bytes.
//!
//! Invariant: nothing is decoded before the header has said how many pixels there are, and they are within the limit.
//! Transparency and the orientation that cameras note are not looked at.

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::error::InterchangeError;

/// The first bytes of a PNG and of a JPEG file.
pub const MAGIC: [&[u8]; 2] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"];

/// A decoded picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// Columns of pixels.
    pub width: usize,
    /// Rows of pixels.
    pub height: usize,
    /// Red, green and blue of every pixel, row by row.
    pub pixels: Vec<u8>,
}

fn broken(message: impl std::fmt::Display) -> InterchangeError {
    InterchangeError::Picture(message.to_string())
}

/// Decodes a picture of at most `most` pixels.
pub fn read(bytes: &[u8], most: u64) -> Result<Picture, InterchangeError> {
    match bytes.starts_with(MAGIC[0]) {
        true => png(bytes, most),
        false => jpeg(bytes, most),
    }
}

/// Refuses a picture of too many pixels, or of none.
fn expect_modest(width: usize, height: usize, most: u64) -> Result<(), InterchangeError> {
    let pixels = (width as u64).saturating_mul(height as u64);
    match pixels {
        0 => Err(broken("there are no pixels")),
        _ if pixels > most => Err(broken(format!("{width}x{height} pixels, at most {most} pixels are decoded"))),
        _ => Ok(()),
    }
}

fn png(bytes: &[u8], most: u64) -> Result<Picture, InterchangeError> {
    // A pixel has at most eight bytes; rows, palettes and the inflater's window come on top.
    let room = usize::try_from(most.saturating_mul(8).saturating_add(1 << 20)).unwrap_or(usize::MAX);
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: room });
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(broken)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    expect_modest(width, height, most)?;
    let len = reader.output_buffer_size().ok_or_else(|| broken("the size overflows"))?;
    let mut data = vec![0; len];
    let frame = reader.next_frame(&mut data).map_err(broken)?;
    data.truncate(frame.buffer_size());
    let pixels = match frame.color_type {
        png::ColorType::Rgb => data,
        png::ColorType::Rgba => data.chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        png::ColorType::Grayscale => data.iter().flat_map(|&grey| [grey; 3]).collect(),
        png::ColorType::GrayscaleAlpha => data.chunks_exact(2).flat_map(|pixel| [pixel[0]; 3]).collect(),
        png::ColorType::Indexed => return Err(broken("a palette was not expanded")),
    };
    Ok(Picture { width, height, pixels })
}

fn jpeg(bytes: &[u8], most: u64) -> Result<Picture, InterchangeError> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB).set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    decoder.decode_headers().map_err(broken)?;
    let (width, height) = decoder.dimensions().ok_or_else(|| broken("the header states no size"))?;
    expect_modest(width, height, most)?;
    match decoder.input_colorspace() {
        Some(ColorSpace::Luma | ColorSpace::YCbCr | ColorSpace::RGB) => {}
        Some(other) => return Err(broken(format!("colours as {other:?}; grey, RGB and YCbCr are read"))),
        None => return Err(broken("the header states no colours")),
    }
    let pixels = decoder.decode().map_err(broken)?;
    match pixels.len() == width * height * 3 {
        true => Ok(Picture { width, height, pixels }),
        false => Err(broken("fewer pixels than the header states")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(color: png::ColorType, depth: png::BitDepth, size: [u32; 2], data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, size[0], size[1]);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == png::ColorType::Indexed {
            encoder.set_palette([1, 2, 3, 4, 5, 6].as_slice());
        }
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn every_colour_type_becomes_red_green_and_blue() {
        use png::{BitDepth, ColorType};
        let cases: [(ColorType, BitDepth, &[u8], [u8; 6]); 6] = [
            (ColorType::Rgb, BitDepth::Eight, &[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
            (ColorType::Rgba, BitDepth::Eight, &[1, 2, 3, 0, 4, 5, 6, 9], [1, 2, 3, 4, 5, 6]),
            (ColorType::Grayscale, BitDepth::Eight, &[7, 8], [7, 7, 7, 8, 8, 8]),
            (ColorType::Grayscale, BitDepth::One, &[0b0100_0000], [0, 0, 0, 255, 255, 255]),
            (ColorType::Grayscale, BitDepth::Sixteen, &[7, 99, 8, 99], [7, 7, 7, 8, 8, 8]),
            (ColorType::Indexed, BitDepth::Eight, &[1, 0], [4, 5, 6, 1, 2, 3]),
        ];
        for (color, depth, data, want) in cases {
            let picture = read(&encoded(color, depth, [2, 1], data), 2).unwrap();
            assert_eq!((picture.width, picture.height, picture.pixels.as_slice()), (2, 1, want.as_slice()));
        }
    }

    #[test]
    fn pictures_of_many_pixels_are_refused_before_they_are_decoded() {
        let mut bytes = encoded(png::ColorType::Grayscale, png::BitDepth::Eight, [3, 2], &[0; 6]);
        assert!(read(&bytes, 6).is_ok());
        assert!(read(&bytes, 5).unwrap_err().to_string().contains("3x2 pixels, at most 5"));
        // A header that promises 2³¹-1 squared; its checksum is right.
        bytes[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        assert!(read(&bytes, 1 << 26).is_err());
    }

    #[test]
    fn cut_pictures_are_errors() {
        let noise: Vec<u8> = (0..300u32).map(|index| (index * index * 7) as u8).collect();
        let whole = encoded(png::ColorType::Rgb, png::BitDepth::Eight, [10, 10], &noise);
        for len in 8..whole.len() - 16 {
            assert!(read(&whole[..len], 1 << 10).is_err(), "{len}");
        }
        for bytes in [
            &b"\xff\xd8\xff"[..],
            b"\xff\xd8\xff\xe0\0\x10JFIF",
            b"\xff\xd8\xff\xc0\0\x0b\x08\xff\xff\xff\xff\x01\x01\x11\0",
        ] {
            assert!(read(bytes, 1 << 10).is_err());
        }
    }
}
