//! A shuffle of channels, which rewrites put into plans: tensors next to each other are cut into groups of channels, and the
//! channels of the groups taken by turns, into one output or several.
//!
//! Invariant: all tensors have their elements in the same order in memory but for the channels, whatever their dimensions
//! are called.

use edgepack_compute::shuffle::{Channels, MOST, shuffle};
use edgepack_executor::kernel::{KernelContext, KernelError, Operator, Prepare, Run};
use edgepack_executor::tensor::TensorShape;
use edgepack_format::tensor::Dims;

/// The positions of its arguments.
pub(crate) const TENSORS: usize = 0;
pub(crate) const OUT: usize = 1;

/// A shuffle of channels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shuffle {
    /// Number of groups.
    pub groups: usize,
    /// The dimension of the inputs that has the channels.
    pub from: usize,
    /// That of each output.
    pub to: Vec<usize>,
}

/// A tensor as rows of channels: all elements before the channels in memory are rows.
struct Lines {
    /// Sizes of the rows and of a channel, in the order of memory.
    around: Dims,
    /// Number of dimensions before the channels.
    before: usize,
    /// Number of channels.
    channels: usize,
    /// Elements of a channel.
    inner: usize,
}

impl Lines {
    fn new(meta: &TensorShape<'_>, dim: usize) -> Option<Lines> {
        let order = meta.dim_order.iter().map(|&dim| usize::from(dim));
        let before = order.clone().position(|at| at == dim)?;
        let size = |at: usize| meta.sizes.get(at).copied().unwrap_or(0);
        Some(Lines {
            // Nothing tells a dimension of one element.
            around: Dims::collect(order.clone().filter(|&at| at != dim).map(size).filter(|&size| size != 1))?,
            before: order.clone().take(before).filter(|&at| size(at) != 1).count(),
            channels: size(dim),
            inner: order.skip(before + 1).map(size).product(),
        })
    }

    fn is_like(&self, other: &Lines) -> bool {
        self.around[..] == other.around[..] && self.before == other.before
    }
}

impl Shuffle {
    /// Returns whether these arguments are those of a shuffle.
    pub fn fits(&self, args: &Prepare<'_>) -> bool {
        self.measure(args).is_ok()
    }

    fn measure(&self, args: &Prepare<'_>) -> Result<Shuffled, KernelError> {
        let (inputs, outputs) = (args.list_len(TENSORS)?, args.list_len(OUT)?);
        let first = args.item(TENSORS, 0)?.ok_or_else(not_together)?.meta;
        let width = first.dtype.size().ok_or_else(not_together)?;
        let like = Lines::new(&first, self.from).ok_or_else(not_together)?;
        let lines = |list: usize, item: usize, dim: usize| {
            let info = args.item(list, item)?.ok_or_else(not_together)?;
            let lines = Lines::new(&info.meta, dim).filter(|lines| lines.is_like(&like));
            let lines = lines.filter(|_| !info.dynamic && info.meta.dtype == first.dtype).ok_or_else(not_together)?;
            Ok::<_, KernelError>((lines, Dims::from_slice(info.meta.sizes).ok_or_else(not_together)?))
        };
        let (mut all, mut from, mut to) = (0, Vec::new(), Vec::new());
        for item in 0..inputs {
            let (lines, _) = lines(TENSORS, item, self.from)?;
            all += lines.channels;
            from.push(lines.channels);
        }
        let mut left = all;
        for item in 0..outputs {
            let (lines, sizes) = lines(OUT, item, *self.to.get(item).ok_or_else(not_together)?)?;
            left = left.checked_sub(lines.channels).ok_or_else(not_together)?;
            to.push((lines.channels, sizes));
        }
        let is_shuffle = (2..=MOST).contains(&self.groups)
            && outputs == self.to.len()
            && left == 0
            && all != 0
            && all.is_multiple_of(self.groups)
            && from.iter().all(|channels| channels.is_multiple_of(all / self.groups))
            && to.iter().all(|(channels, _)| channels.is_multiple_of(self.groups));
        if !is_shuffle {
            return Err(not_together());
        }
        Ok(Shuffled { groups: self.groups, each: all / self.groups, channel: like.inner * width, from, to })
    }
}

#[cold]
fn not_together() -> KernelError {
    KernelError::unsupported("tensors whose channels are not shuffled together")
}

impl Operator for Shuffle {
    fn name(&self) -> &str {
        "edgepack::shuffle.out"
    }

    fn schema(&self) -> &str {
        "(Tensor[] tensors, *, Tensor(a!)[] out) -> ()"
    }

    fn prepare(&self, args: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
        Ok(Box::new(self.measure(args)?))
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

/// A shuffle of tensors whose shapes never change.
struct Shuffled {
    groups: usize,
    /// Channels of a group.
    each: usize,
    /// Bytes of a channel in a row.
    channel: usize,
    /// Channels of each input.
    from: Vec<usize>,
    /// Channels and sizes of each output.
    to: Vec<(usize, Dims)>,
}

impl Run for Shuffled {
    fn run(&mut self, cx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        for (item, (_, sizes)) in self.to.iter().enumerate() {
            cx.resize_item(OUT, item, sizes)?;
        }
        let views = cx.views();
        let mut groups = [Channels::default(); MOST];
        let mut count = 0;
        for (item, channels) in self.from.iter().enumerate() {
            let input = views.item(TENSORS, item)?.ok_or_else(not_together)?;
            for first in (0..*channels).step_by(self.each) {
                let (row, start) = (channels * self.channel, first * self.channel);
                groups[count] = Channels { bytes: input.bytes(), row, start };
                count += 1;
            }
        }
        let groups = &mut groups[..self.groups];
        for (target, (channels, _)) in views.out_list(OUT)?.zip(&self.to) {
            shuffle(groups, self.channel, channels * self.channel, target?.bytes_mut());
            groups.iter_mut().for_each(|group| group.start += channels / self.groups * self.channel);
        }
        Ok(())
    }
}
