//! The types that generated code passes around, as they are in memory, and the calls themselves.
#![allow(unsafe_code, reason = "calling compiled code is what this crate is for; the contract is on each function")]

use std::ffi::{CStr, c_char, c_void};

use edgepack_executor::mlf::Operand;

/// Type code of a tensor argument.
const TENSOR: i32 = 7;
/// Type of the only device there is here.
const CPU: i32 = 1;

/// A tensor for generated code: what it looks like and where it is.
#[derive(Clone, Copy, Debug)]
pub struct TensorArg<'a> {
    /// Its element type and shape.
    pub operand: &'a Operand,
    /// The first byte. Code may read all bytes of the operand here, and write them if it is a result.
    pub data: *mut c_void,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `TVMValue`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Value {
    int: i64,
    pub(crate) handle: *mut c_void,
}

/// A packed function.
pub(crate) type Packed = unsafe extern "C" fn(*mut Value, *mut i32, i32, *mut Value, *mut i32, *mut c_void) -> i32;

/// An entry point with an interface of structs, all of whose members are pointers.
pub(crate) type Entry1 = unsafe extern "C" fn(*mut *mut c_void, *mut *mut c_void) -> i32;
/// An entry point with an interface of structs and with memory pools.
pub(crate) type Entry2 = unsafe extern "C" fn(*mut *mut c_void, *mut *mut c_void, *mut *mut c_void) -> i32;

/// Arguments of a packed call; its lists are reused from call to call.
#[derive(Default)]
pub(crate) struct Frame {
    tensors: Vec<DlTensor>,
    values: Vec<Value>,
    codes: Vec<i32>,
}

// SAFETY: the pointers in a frame are written before every call and used in no other way.
unsafe impl Send for Frame {}

impl Frame {
    /// Forgets the arguments of the call before.
    pub(crate) fn clear(&mut self) {
        self.tensors.clear();
    }

    /// Adds an argument.
    pub(crate) fn push(&mut self, tensor: TensorArg<'_>) {
        let TensorArg { operand, data } = tensor;
        let data_type = operand.data_type();
        self.tensors.push(DlTensor {
            data,
            device_type: CPU,
            device_id: 0,
            ndim: operand.shape().len() as i32,
            code: data_type.class().code(),
            bits: data_type.bits(),
            lanes: data_type.lanes(),
            // Generated code only reads shapes.
            shape: operand.shape().as_ptr().cast_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        });
    }

    /// Calls a packed function with the arguments that were added.
    ///
    /// # Safety
    /// `function` is a packed function of the loaded library, made for these tensors: it reads and writes no byte beyond
    /// those of their operands. Every operand and every `data` is still valid for that, and results overlap nothing else.
    pub(crate) unsafe fn call(&mut self, function: Packed) -> i32 {
        self.values.clear();
        self.values.extend(self.tensors.iter_mut().map(|tensor| Value { handle: std::ptr::from_mut(tensor).cast() }));
        self.codes.clear();
        self.codes.resize(self.values.len(), TENSOR);
        let (mut value, mut code) = (Value { int: 0 }, 0);
        let count = self.values.len() as i32;
        // SAFETY: by the caller; the arrays have `count` elements each.
        unsafe {
            function(
                self.values.as_mut_ptr(),
                self.codes.as_mut_ptr(),
                count,
                &mut value,
                &mut code,
                std::ptr::null_mut(),
            )
        }
    }
}

/// `TVMTensorInfo`.
#[repr(C)]
pub(crate) struct TensorInfo {
    name: *const c_char,
    shape: *const i64,
    num_shape: i64,
    code: u8,
    bits: u8,
    lanes: u16,
}

/// The start of `TVMMetadata`.
#[repr(C)]
pub(crate) struct MetadataTable {
    version: i64,
    inputs: *const TensorInfo,
    num_inputs: i64,
    outputs: *const TensorInfo,
    num_outputs: i64,
}

/// Description of one tensor in a table: its name, element type (class, bits, lanes) and shape.
pub(crate) type Described = (String, (u8, u8, u16), Vec<i64>);

/// Inputs and outputs that the code itself describes.
///
/// # Safety
/// `function` is the `get_c_metadata` of the loaded library.
pub(crate) unsafe fn metadata(function: Packed) -> Option<(Vec<Described>, Vec<Described>)> {
    let (mut value, mut code) = (Value { int: 0 }, 0);
    // SAFETY: by the caller; the function takes no arguments and answers with the address of a constant table.
    let status =
        unsafe { function(std::ptr::null_mut(), std::ptr::null_mut(), 0, &mut value, &mut code, std::ptr::null_mut()) };
    // SAFETY: both members are eight bytes of anything.
    let table = unsafe { value.handle }.cast::<MetadataTable>();
    if status != 0 || code != 3 || table.is_null() {
        return None;
    }
    // SAFETY: the table lives as long as the library.
    let table = unsafe { &*table };
    if table.version != 1 {
        return None;
    }
    // SAFETY: pointers and counts are of one table.
    unsafe { Some((list(table.inputs, table.num_inputs), list(table.outputs, table.num_outputs))) }
}

/// # Safety
/// `first` is followed by `count` elements, each with a terminated name and a shape of its length.
unsafe fn list(first: *const TensorInfo, count: i64) -> Vec<Described> {
    if first.is_null() || count <= 0 {
        return Vec::new();
    }
    // SAFETY: by the caller.
    let infos = unsafe { std::slice::from_raw_parts(first, count as usize) };
    infos
        .iter()
        .map(|info| {
            // SAFETY: by the caller.
            let name = unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned();
            let shape = match info.num_shape {
                count @ 1.. if !info.shape.is_null() => {
                    // SAFETY: by the caller.
                    unsafe { std::slice::from_raw_parts(info.shape, count as usize) }.to_vec()
                }
                _ => Vec::new(),
            };
            (name, (info.code, info.bits, info.lanes), shape)
        })
        .collect()
}
