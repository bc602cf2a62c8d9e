//! Arguments of a call, for callbacks of operators and backends.
//!
//! A callback has two phases, as operators of the library have: first it reads numbers and sizes and sets the sizes of its
//! outputs; then it asks for memory, and sizes stay as they are. Every output is handed out once.

use std::ffi::{c_char, c_void};

use edgepack::executor::kernel::Views;
use edgepack::executor::tensor::TensorMut;
use edgepack::format::finding::ErrorCode;
use edgepack::format::tensor::MAX_RANK;

use crate::call::{EdgepackCall, Running, View, give_reason, look};
use crate::entry;
use crate::error::EdgepackCode;
use crate::failure::Failure;
use crate::pointer::{In, Out};
use crate::value::{EdgepackTensor, EdgepackTensorMut};

/// Runs the body of a function that looks at a call.
pub(crate) fn seen<R>(id: u64, body: impl FnOnce(&mut View<'_, '_>) -> Result<R, Failure>) -> EdgepackCode {
    let code = entry::plain(|| look(id, body).map(|_| ()), Err(ErrorCode::Internal));
    code.map_or_else(EdgepackCode::from, |()| EdgepackCode::Ok)
}

fn other() -> Failure {
    Failure::state("this is known to another kind of callback")
}

fn not_running() -> Failure {
    Failure::state("this is possible only when a call runs, not when it is prepared")
}

fn unknown(arg: usize) -> Failure {
    Failure::new(ErrorCode::NotSupported, format!("argument {arg} is known only when the call runs"))
}

/// An instruction that runs.
fn running<'v, 'a, 'm>(view: &'v mut View<'a, 'm>) -> Result<&'v mut Running<'a, 'm>, Failure> {
    match view {
        View::Run(running) => Ok(running),
        View::Prepare(_) => Err(not_running()),
        View::Init(_) => Err(other()),
    }
}

impl Running<'_, '_> {
    /// Notes that an output is handed out, which it is once.
    fn take(&mut self, arg: usize) -> Result<(), Failure> {
        let bit = u32::try_from(arg).ok().and_then(|arg| 1u128.checked_shl(arg)).unwrap_or(0);
        if self.taken & bit != 0 {
            return Err(Failure::state(format!("output {arg} was handed out before")));
        }
        self.taken |= bit;
        self.viewed = true;
        Ok(())
    }

    fn view(&mut self) -> Views<'_> {
        self.viewed = true;
        self.context.views()
    }

    /// Fails once memory was handed out.
    fn still_sized(&self) -> Result<(), Failure> {
        match self.viewed {
            false => Ok(()),
            true => Err(Failure::state("sizes are set before memory is asked for")),
        }
    }
}

fn out(mut tensor: TensorMut<'_>) -> EdgepackTensorMut {
    let shape = tensor.meta();
    EdgepackTensorMut {
        dtype: i32::from(shape.dtype.0),
        rank: shape.rank(),
        sizes: In::to(shape.sizes.as_ptr()),
        dim_order: In::to(shape.dim_order.as_ptr()),
        len: shape.byte_len(),
        data: Out::to(tensor.bytes_mut().as_mut_ptr().cast()),
    }
}

/// Gives the reason for which a callback is about to return an error. Without one, the last error of a function that the
/// callback called for the same call is the reason.
///
/// Ownership: the text is copied. Threads: that of the callback.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_fail(call: EdgepackCall, message: In<c_char>) -> EdgepackCode {
    let given = || give_reason(call.id, message.text("the reason").map_err(|failure| failure.code)?);
    entry::plain(given, Err(ErrorCode::Internal)).map_or_else(EdgepackCode::from, |()| EdgepackCode::Ok)
}

/// Returns the number of arguments by `count`: those of the schema, and the result again where programs repeat it.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_count(call: EdgepackCall, count: Out<usize>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.len(),
            View::Run(running) => running.context.len(),
            View::Init(_) => return Err(other()),
        };
        count.write(found, "count")
    })
}

/// Returns by `none` whether an argument is `None`, 1 or 0.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_is_none(call: EdgepackCall, arg: usize, none: Out<u32>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.is_none(arg),
            View::Run(running) => running.context.is_none(arg),
            View::Init(_) => return Err(other()),
        };
        none.write(found.into(), "none")
    })
}

/// Returns an integer by `value`. While preparing, EDGEPACK_CODE_NOT_SUPPORTED if it is known only when the call runs.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_int(call: EdgepackCall, arg: usize, value: Out<i64>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.int(arg)?.ok_or_else(|| unknown(arg))?,
            View::Run(running) => running.context.int(arg)?,
            View::Init(_) => return Err(other()),
        };
        value.write(found, "value")
    })
}

/// Returns a floating point number by `value`, to which an integer is converted. While preparing as edgepack_call_int.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_double(call: EdgepackCall, arg: usize, value: Out<f64>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.double(arg)?.ok_or_else(|| unknown(arg))?,
            View::Run(running) => running.context.double(arg)?,
            View::Init(_) => return Err(other()),
        };
        value.write(found, "value")
    })
}

/// Returns a truth value by `value`, 1 or 0. While preparing as edgepack_call_int.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_bool(call: EdgepackCall, arg: usize, value: Out<u32>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.bool(arg)?.ok_or_else(|| unknown(arg))?,
            View::Run(running) => running.context.bool(arg)?,
            View::Init(_) => return Err(other()),
        };
        value.write(found.into(), "value")
    })
}

/// Copies a list of integers into `values`, which has room for `room` of them, and returns how many there are by `count`,
/// also if the room is too small: that is EDGEPACK_CODE_INVALID_ARGUMENT. While preparing as edgepack_call_int.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_ints(
    call: EdgepackCall,
    arg: usize,
    values: Out<i64>,
    room: usize,
    count: Out<usize>,
) -> EdgepackCode {
    seen(call.id, |view| {
        let copy = |len: usize, items: &mut dyn Iterator<Item = i64>| {
            count.write(len, "count")?;
            if len > room {
                return Err(Failure::argument(format!("argument {arg} has {len} items, there is room for {room}")));
            }
            items.enumerate().try_for_each(|(index, item)| values.write_at(index, room, item, "values"))
        };
        match view {
            View::Prepare(prepare) => {
                let list = prepare.ints(arg)?.ok_or_else(|| unknown(arg))?;
                copy(list.len(), &mut list.iter().copied())
            }
            View::Run(running) => {
                let list = running.context.ints(arg)?;
                copy(list.len(), &mut list.iter())
            }
            View::Init(_) => Err(other()),
        }
    })
}

/// Returns text by `text`, of `len` bytes. There is no zero byte behind it.
///
/// Ownership: the text is the method's, until the callback returns. Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_text(
    call: EdgepackCall,
    arg: usize,
    text: Out<In<c_char>>,
    len: Out<usize>,
) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.text(arg)?,
            View::Run(running) => running.context.text(arg)?,
            View::Init(_) => return Err(other()),
        };
        len.write(found.len(), "len")?;
        text.write(In::to(found.as_ptr().cast()), "text")
    })
}

/// Returns the layout of a tensor, an input or an output, by `tensor`: its data are null. While preparing, sizes of dynamic
/// tensors are upper bounds, and the data of a constant are there.
///
/// Ownership: what it leads to is the method's, until the callback sets sizes or returns.
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_layout(call: EdgepackCall, arg: usize, tensor: Out<EdgepackTensor>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => {
                let info = prepare.tensor(arg)?;
                EdgepackTensor::of_shape(&info.meta, info.constant.map(|constant| constant.bytes()))
            }
            View::Run(running) => EdgepackTensor::of_shape(&running.context.meta(arg)?, None),
            View::Init(_) => return Err(other()),
        };
        tensor.write(found, "tensor")
    })
}

/// Asks for scratch memory of so many bytes for the runs of the call.
///
/// Threads: that of the callback. Prepare.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_want_scratch(call: EdgepackCall, bytes: usize) -> EdgepackCode {
    seen(call.id, |view| match view {
        View::Prepare(prepare) => {
            prepare.scratch(bytes);
            Ok(())
        }
        View::Run(_) => Err(Failure::state("scratch is asked for when the call is prepared")),
        View::Init(_) => Err(other()),
    })
}

/// Gives an output other sizes, within the bounds that the program has for it. Before memory is asked for.
///
/// Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_resize(call: EdgepackCall, arg: usize, sizes: In<usize>, rank: usize) -> EdgepackCode {
    seen(call.id, |view| {
        let running = running(view)?;
        running.still_sized()?;
        let sizes = copied(sizes, rank)?;
        Ok(running.context.resize(arg, &sizes)?)
    })
}

/// Gives an output of a list other sizes, as edgepack_call_resize does.
///
/// Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_resize_item(
    call: EdgepackCall,
    arg: usize,
    item: usize,
    sizes: In<usize>,
    rank: usize,
) -> EdgepackCode {
    seen(call.id, |view| {
        let running = running(view)?;
        running.still_sized()?;
        let sizes = copied(sizes, rank)?;
        Ok(running.context.resize_item(arg, item, &sizes)?)
    })
}

/// A copy of sizes, which may be those of another tensor of the call.
fn copied(sizes: In<usize>, rank: usize) -> Result<Vec<usize>, Failure> {
    if rank > MAX_RANK {
        return Err(Failure::argument(format!("{rank} dimensions, at most {MAX_RANK} are possible")));
    }
    Ok(sizes.slice(rank, "sizes")?.to_vec())
}

/// Returns an input tensor by `tensor`.
///
/// Ownership: what it leads to is the method's, until the callback returns. Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_tensor(call: EdgepackCall, arg: usize, tensor: Out<EdgepackTensor>) -> EdgepackCode {
    seen(call.id, |view| {
        tensor.check(1, "tensor")?;
        let views = running(view)?.view();
        let found = views.tensor(arg)?;
        if found.is_in_place() {
            return Err(Failure::argument(format!("argument {arg} is an output")));
        }
        tensor.write(EdgepackTensor::of_shape(&found, Some(found.bytes())), "tensor")
    })
}

/// Returns an output tensor by `tensor`, once.
///
/// Ownership: what it leads to is the method's, until the callback returns. Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_output(call: EdgepackCall, arg: usize, tensor: Out<EdgepackTensorMut>) -> EdgepackCode {
    seen(call.id, |view| {
        tensor.check(1, "tensor")?;
        let running = running(view)?;
        running.take(arg)?;
        let found = running.view().out(arg).map(out)?;
        tensor.write(found, "tensor")
    })
}

/// Returns the number of tensors of a list by `count`.
///
/// Threads: that of the callback. Prepare and run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_list_count(call: EdgepackCall, arg: usize, count: Out<usize>) -> EdgepackCode {
    seen(call.id, |view| {
        let found = match view {
            View::Prepare(prepare) => prepare.list_len(arg)?,
            View::Run(running) => running.context.list_len(arg)?,
            View::Init(_) => return Err(other()),
        };
        count.write(found, "count")
    })
}

/// Returns a tensor of a list of inputs by `tensor`; EDGEPACK_CODE_NOT_FOUND if the item is `None`.
///
/// Ownership: what it leads to is the method's, until the callback returns. Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_list_tensor(
    call: EdgepackCall,
    arg: usize,
    item: usize,
    tensor: Out<EdgepackTensor>,
) -> EdgepackCode {
    seen(call.id, |view| {
        tensor.check(1, "tensor")?;
        let views = running(view)?.view();
        let found = views.item(arg, item)?.ok_or_else(|| Failure::missing("tensor in the list at", item))?;
        if found.is_in_place() {
            return Err(Failure::argument(format!("argument {arg} is an output")));
        }
        tensor.write(EdgepackTensor::of_shape(&found, Some(found.bytes())), "tensor")
    })
}

/// Returns all tensors of a list of outputs by `tensors`, once; `count` is their number.
///
/// Ownership: what they lead to is the method's, until the callback returns. Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_list_outputs(
    call: EdgepackCall,
    arg: usize,
    tensors: Out<EdgepackTensorMut>,
    count: usize,
) -> EdgepackCode {
    seen(call.id, |view| {
        tensors.check(count, "tensors")?;
        let running = running(view)?;
        let have = running.context.list_len(arg)?;
        if have != count {
            return Err(Failure::argument(format!("argument {arg} has {have} tensors, {count} are wanted")));
        }
        running.take(arg)?;
        let views = running.view();
        for (index, tensor) in views.out_list(arg)?.enumerate() {
            tensors.write_at(index, count, out(tensor?), "tensors")?;
        }
        Ok(())
    })
}

/// Returns the scratch memory that was asked for by `data`, and its length by `len`, once. It has any content.
///
/// Ownership: it is the method's, until the callback returns. Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_scratch(call: EdgepackCall, data: Out<Out<c_void>>, len: Out<usize>) -> EdgepackCode {
    seen(call.id, |view| {
        data.check(1, "data")?;
        let running = running(view)?;
        if std::mem::replace(&mut running.scratch, true) {
            return Err(Failure::state("scratch was handed out before"));
        }
        let views = running.view();
        let scratch = views.scratch()?;
        len.write(scratch.len(), "len")?;
        data.write(Out::to(scratch.as_mut_ptr().cast()), "data")
    })
}

/// Writes a result that is an integer.
///
/// Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_set_int(call: EdgepackCall, arg: usize, value: i64) -> EdgepackCode {
    seen(call.id, |view| Ok(running(view)?.context.set_int(arg, value)?))
}

/// Writes a result that is a floating point number.
///
/// Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_set_double(call: EdgepackCall, arg: usize, value: f64) -> EdgepackCode {
    seen(call.id, |view| Ok(running(view)?.context.set_double(arg, value)?))
}

/// Writes a result that is a truth value, false for 0.
///
/// Threads: that of the callback. Run.
#[unsafe(no_mangle)]
pub extern "C" fn edgepack_call_set_bool(call: EdgepackCall, arg: usize, value: u32) -> EdgepackCode {
    seen(call.id, |view| Ok(running(view)?.context.set_bool(arg, value != 0)?))
}
