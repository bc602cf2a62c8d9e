//! Pictures as tensors: resized, cut to the size of the input, as numbers with a mean and a deviation, in its order.
//!
//! Resizing is bilinear over all pixels of the picture (antialiased), and gives whole levels of 0 to 255 as imaging
//! libraries do, to within a level of what Pillow gives. What is larger than the input is cut around the middle.

use std::fmt;
use std::str::FromStr;

use edgepack_compute::layout::Strided;
use edgepack_compute::resize::antialias::{Line, resize};
use edgepack_format::notation::TensorType;
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorBuf, TensorLayout};
use half::{bf16, f16};

use crate::interchange::Picture;

/// Largest width and height that a picture is resized to.
const LARGEST: usize = 1 << 14;

/// Steps from a picture to a tensor, as `--image` states them.
#[derive(Clone, PartialEq, Debug)]
pub struct Preparation {
    resize: Resize,
    /// Subtracted from red, green and blue, which are 0 to 1.
    mean: [f64; 3],
    /// Divides them after that.
    std: [f64; 3],
    /// Multiplies them at the end.
    max: f64,
    /// True if blue comes first.
    bgr: bool,
    /// True if the channels are the last dimension of the input; found out from its sizes if not stated.
    channels_last: Option<bool>,
}

/// Size of the picture before it is cut.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Resize {
    /// As it is.
    No,
    /// The shorter side has this length.
    Short(usize),
    /// Height and width.
    To([usize; 2]),
    /// The shorter side is 8/7 of the shorter side of the input: 256 for 224.
    Margin,
    /// Height and width of the input.
    Fit,
}

/// Named settings.
const PRESETS: [&str; 4] = ["imagenet", "signed", "unit", "bytes"];

impl Preparation {
    fn preset(name: &str) -> Option<Self> {
        let plain = Preparation {
            resize: Resize::Fit,
            mean: [0.0; 3],
            std: [1.0; 3],
            max: 1.0,
            bgr: false,
            channels_last: None,
        };
        Some(match name {
            "imagenet" => {
                Preparation { resize: Resize::Margin, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], ..plain }
            }
            "signed" => Preparation { mean: [0.5; 3], std: [0.5; 3], ..plain },
            "unit" => plain,
            "bytes" => Preparation { max: 255.0, ..plain },
            _ => return None,
        })
    }
}

impl FromStr for Preparation {
    type Err = String;

    /// Reads `PRESET`, `KEY=VALUE,…` or `PRESET,KEY=VALUE,…`; a list of three numbers may have commas of its own.
    fn from_str(text: &str) -> Result<Self, String> {
        let (first, rest) = text.split_once(',').unwrap_or((text, ""));
        let (mut this, rest) = match Preparation::preset(first) {
            Some(preset) => (preset, rest),
            None if first.contains('=') => {
                let plain = Preparation::preset("unit").map(|unit| Preparation { resize: Resize::No, ..unit });
                (plain.ok_or("no settings")?, text)
            }
            None => return Err(format!("{first:?} is not a preset; there are {}", PRESETS.join(", "))),
        };
        // Numbers without a key continue the list of the key before them.
        let mut settings: Vec<(&str, String)> = Vec::new();
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            match (part.split_once('='), settings.last_mut()) {
                (Some((key, value)), _) => settings.push((key, value.to_owned())),
                (None, Some((_, list))) => list.extend([",", part]),
                (None, None) => return Err(format!("{part:?} is not KEY=VALUE")),
            }
        }
        for (key, value) in &settings {
            match *key {
                "resize" => this.resize = size(value)?,
                "mean" => this.mean = three(value)?,
                "std" => this.std = three(value)?,
                "max" => this.max = number(value)?,
                "order" => this.bgr = one_of(value, ["rgb", "bgr"])?,
                "layout" => this.channels_last = Some(one_of(value, ["nchw", "nhwc"])?),
                _ => return Err(format!("{key:?} is none of resize, mean, std, max, order, layout")),
            }
        }
        match this.std.contains(&0.0) {
            true => Err("a std of 0 divides by zero".to_owned()),
            false => Ok(this),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| format!("{text:?} is not a number"))
}

/// One number for all channels, or one for each.
fn three(text: &str) -> Result<[f64; 3], String> {
    let numbers = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    match numbers.as_slice() {
        &[all] => Ok([all; 3]),
        &[red, green, blue] => Ok([red, green, blue]),
        other => Err(format!("{} numbers for three channels", other.len())),
    }
}

/// `224` for the shorter side, `224x320` for height and width.
fn size(text: &str) -> Result<Resize, String> {
    let side = |text: &str| match text.parse() {
        Ok(side) if (1..=LARGEST).contains(&side) => Ok(side),
        _ => Err(format!("{text:?} is not a size from 1 to {LARGEST}")),
    };
    match text.split_once('x') {
        Some((height, width)) => Ok(Resize::To([side(height)?, side(width)?])),
        None => Ok(Resize::Short(side(text)?)),
    }
}

/// Returns whether it is the second of two words.
fn one_of(text: &str, [no, yes]: [&str; 2]) -> Result<bool, String> {
    match text {
        _ if text == no => Ok(false),
        _ if text == yes => Ok(true),
        _ => Err(format!("{text:?} is neither {no} nor {yes}")),
    }
}

/// Dimensions of an input for pictures.
#[derive(Clone, Copy)]
struct Axes {
    channels: usize,
    height: usize,
    width: usize,
    channels_last: bool,
}

impl Preparation {
    /// Turns a picture into a tensor of this layout, which is contiguous.
    ///
    /// # Errors
    ///
    /// A message if the input is not for pictures, has other elements than floats or bytes, or is larger than the picture.
    pub fn tensor(&self, picture: &Picture, wanted: &TensorLayout) -> Result<TensorBuf, String> {
        let axes = self.axes(wanted)?;
        let element = wanted.scalar_type();
        match element {
            ScalarType::FLOAT | ScalarType::DOUBLE | ScalarType::HALF | ScalarType::BFLOAT16 => {}
            ScalarType::BYTE
                if *self
                    == (Preparation {
                        resize: self.resize,
                        bgr: self.bgr,
                        channels_last: self.channels_last,
                        ..self.bytes()
                    }) => {}
            ScalarType::BYTE => return Err("the input takes bytes, 0 to 255: --image bytes".to_owned()),
            _ => return Err(format!("a picture does not become {}", Shown(wanted))),
        }
        let [height, width] = self.target([picture.height, picture.width], axes)?;
        if height < axes.height || width < axes.width {
            let (have, want) = (format!("{height}x{width}"), format!("{}x{}", axes.height, axes.width));
            return Err(format!(
                "the picture has {have} pixels (height x width), the input {want}: --image resize={want}, or a preset"
            ));
        }
        let pixels = scaled(picture, [height, width])?;
        let (top, left) = (margin(height, axes.height), margin(width, axes.width));
        let count = axes.channels * axes.height * axes.width;
        let mut data = Vec::new();
        let room = data.try_reserve_exact(count.saturating_mul(element.size().unwrap_or(8)));
        room.map_err(|_| format!("there is no memory for {}", Shown(wanted)))?;
        for place in 0..count {
            let (channel, y, x) = axes.split(place);
            let level = self.level(&pixels[((top + y) * width + left + x) * 3..][..3], channel, axes.channels);
            match element {
                ScalarType::FLOAT => data.extend((level as f32).to_le_bytes()),
                ScalarType::DOUBLE => data.extend(level.to_le_bytes()),
                ScalarType::HALF => data.extend(f16::from_f64(level).to_le_bytes()),
                ScalarType::BFLOAT16 => data.extend(bf16::from_f64(level).to_le_bytes()),
                _ => data.push(level as u8),
            }
        }
        let layout = TensorLayout::contiguous(element, wanted.sizes()).map_err(|error| error.to_string())?;
        TensorBuf::from_bytes(layout, data).map_err(|error| error.to_string())
    }

    /// Numbers that are the bytes of the picture.
    fn bytes(&self) -> Preparation {
        Preparation { mean: [0.0; 3], std: [1.0; 3], max: 255.0, ..self.clone() }
    }

    /// One number of a pixel; a picture with one channel has the brightness.
    fn level(&self, pixel: &[u8], channel: usize, channels: usize) -> f64 {
        let color = if self.bgr { 2 - channel } else { channel };
        let level = match channels {
            // Weights of ITU-R 601-2 in 16 bits, rounded, as imaging libraries have them.
            1 => {
                let [red, green, blue] = [0, 1, 2].map(|color| u32::from(pixel[color]));
                (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16
            }
            _ => u32::from(pixel[color]),
        };
        let color = if channels == 1 { 0 } else { color };
        // Bytes stay what they are: a division by 255 and a product with it may miss them by a rounding.
        match self.max == 255.0 && self.mean[color] == 0.0 && self.std[color] == 1.0 {
            true => f64::from(level),
            false => (f64::from(level) / 255.0 - self.mean[color]) / self.std[color] * self.max,
        }
    }

    /// The dimensions of an input, `[1, C, H, W]`, `[1, H, W, C]` or without the first.
    fn axes(&self, wanted: &TensorLayout) -> Result<Axes, String> {
        let sizes = match wanted.sizes() {
            [1, rest @ ..] if rest.len() == 3 => rest,
            rest => rest,
        };
        let is_color = |size: usize| size == 1 || size == 3;
        let &[first, middle, last] = sizes else {
            return Err(format!("a picture does not become {}: [1, C, H, W] or [1, H, W, C] is wanted", Shown(wanted)));
        };
        // Three channels are sooner meant than one.
        let found = first != 3 && (last == 3 || (first != 1 && last == 1));
        let channels_last = self.channels_last.unwrap_or(found);
        let (channels, height, width) = if channels_last { (last, first, middle) } else { (first, middle, last) };
        match is_color(channels) && height > 0 && width > 0 {
            true => Ok(Axes { channels, height, width, channels_last }),
            false => Err(format!("a picture does not become {}, which has {channels} channels", Shown(wanted))),
        }
    }

    /// Height and width of the picture before it is cut.
    fn target(&self, [height, width]: [usize; 2], axes: Axes) -> Result<[usize; 2], String> {
        let short = |side: usize| {
            // The longer side is rounded down.
            let other = |long: usize, short: usize| (side as u64 * long as u64 / short as u64) as usize;
            if height <= width { [side, other(width, height)] } else { [other(height, width), side] }
        };
        let target = match self.resize {
            Resize::No => [height, width],
            Resize::To(size) => size,
            Resize::Fit => [axes.height, axes.width],
            Resize::Short(side) => short(side),
            Resize::Margin => short((axes.height.max(axes.width) as f64 * 8.0 / 7.0).round() as usize),
        };
        match self.resize != Resize::No && target.iter().any(|&side| side > LARGEST) {
            true => Err(format!("resizing to {}x{}, at most {LARGEST} are possible", target[0], target[1])),
            false => Ok(target),
        }
    }
}

impl Axes {
    /// Channel, row and column of the element at a place.
    fn split(&self, place: usize) -> (usize, usize, usize) {
        match self.channels_last {
            true => {
                let (pixel, channel) = (place / self.channels, place % self.channels);
                (channel, pixel / self.width, pixel % self.width)
            }
            false => {
                let (row, x) = (place / self.width, place % self.width);
                (row / self.height, row % self.height, x)
            }
        }
    }
}

/// Pixels in front of the middle part, rounded to the even one between two.
fn margin(have: usize, want: usize) -> usize {
    ((have - want) as f64 / 2.0).round_ties_even() as usize
}

/// The pixels of a picture of another size.
fn scaled(picture: &Picture, [height, width]: [usize; 2]) -> Result<Vec<u8>, String> {
    if [picture.height, picture.width] == [height, width] {
        return Ok(picture.pixels.clone());
    }
    let image = |height: usize, width: usize| Strided {
        sizes: [1, 3, height, width],
        strides: [height * width * 3, 1, width * 3, 3],
    };
    let mut pixels = Vec::new();
    let room = pixels.try_reserve_exact(height * width * 3);
    room.map_err(|_| format!("there is no memory for {height}x{width} pixels"))?;
    pixels.resize(height * width * 3, 0);
    let lines = [(picture.height, height), (picture.width, width)].map(|(from, to)| Line::new(from, to, false, None));
    let [rows, columns] = lines.map(|line| line.map_err(|error| error.to_string()));
    resize::<u8>(
        (image(picture.height, picture.width), &picture.pixels),
        (image(height, width), &mut pixels),
        [rows?, columns?],
        &mut vec![0.0; picture.width],
    )
    .map_err(|error| error.to_string())?;
    Ok(pixels)
}

/// The type of an input in a message.
struct Shown<'a>(&'a TensorLayout);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TensorType { element: self.0.scalar_type(), sizes: self.0.sizes(), dim_order: self.0.dim_order() }.fmt(f)
    }
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
