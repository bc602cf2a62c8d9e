//! Modules of the ahead-of-time executor, and single operators: one entry point, called by the package's convention.
#![allow(unsafe_code, reason = "calling compiled code; each block says what the caller has agreed to")]

use std::ffi::c_void;

use edgepack_executor::mlf::Operand;
use edgepack_format::mlf::{BufferInfo, CInterface, Class, DataType, Entry, Module, Style, relay};
use edgepack_loader::AlignedBytes;
use edgepack_loader::mlf::LibraryModule;

use crate::abi::{self, Described, Entry1, Entry2, TensorArg};
use crate::compile::Options;
use crate::error::Error;
use crate::library::NativeLibrary;
use crate::spec::IoSpec;

/// A module that is one function.
#[derive(Debug)]
pub struct AotModule {
    library: NativeLibrary,
    entry: String,
    convention: Convention,
    inputs: Vec<IoSpec>,
    /// Empty if the package does not say.
    outputs: Vec<IoSpec>,
    pools: Vec<AlignedBytes>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Convention {
    /// Tensors, inputs before outputs.
    Packed,
    /// Structs of pointers.
    Structs,
}

impl AotModule {
    /// Compiles a module and finds its entry point.
    pub fn compile(module: &LibraryModule, options: &Options) -> Result<AotModule, Error> {
        Self::new(module, NativeLibrary::compile(module, options)?)
    }

    /// Finds the entry point of a module in its loaded library.
    pub(crate) fn new(module: &LibraryModule, library: NativeLibrary) -> Result<AotModule, Error> {
        let info = module.info();
        if info.style == Style::Operator {
            let (entry, _) = info.memory.buffers.first().ok_or_else(|| Error::Symbol(info.name.clone()))?;
            return Self::function(module, entry, library);
        }
        let entry = format!("{}_run", info.prefix());
        for header in module.headers() {
            let Ok(text) = std::str::from_utf8(header.bytes) else { continue };
            if let Some(interface) = CInterface::parse(text, info).map_err(edgepack_loader::Error::from)? {
                return Self::structs(library, entry, interface, module);
            }
        }
        let direct = format!("{}___tvm_main__", info.prefix());
        let entry = [entry, direct].into_iter().find(|name| library.has(name));
        let entry = entry.ok_or_else(|| Error::Symbol(format!("{}_run", info.prefix())))?;
        let (inputs, outputs) = described(&library, info).unwrap_or_else(|| (listed(info, true), listed(info, false)));
        Ok(AotModule { library, entry, convention: Convention::Packed, inputs, outputs, pools: Vec::new() })
    }

    /// One packed function of a module, to be called alone: of a single operator one that the metadata list, of a
    /// graph one that it calls, with the arguments of the first call.
    pub(crate) fn function(module: &LibraryModule, function: &str, library: NativeLibrary) -> Result<AotModule, Error> {
        let info = module.info();
        let buffers = info.memory.buffers.iter().find(|(name, _)| name == function);
        let call =
            module.graph().and_then(|graph| Some((graph, graph.calls().find(|(.., call)| call.function == function)?)));
        let (inputs, outputs) = match (buffers, call) {
            // The metadata list all buffers alike; how many of them are results the caller says.
            (Some((_, buffers)), _) => (buffers.iter().map(of_buffer).collect(), Vec::new()),
            (None, Some((graph, (node, row, _)))) => {
                let spec =
                    |(place, entry): (usize, &Entry)| IoSpec { name: place.to_string(), operand: Operand::of(entry) };
                let inputs = row.inputs.iter().filter_map(|&input| graph.entry(input)).enumerate().map(spec);
                let outputs = graph.outputs_of(node).filter_map(|entry| graph.entries.get(entry as usize));
                (inputs.collect(), outputs.enumerate().map(spec).collect())
            }
            (None, None) => return Err(Error::Symbol(function.to_owned())),
        };
        if !library.has(function) {
            return Err(Error::Symbol(function.to_owned()));
        }
        let entry = function.to_owned();
        Ok(AotModule { entry, convention: Convention::Packed, inputs, outputs, pools: Vec::new(), library })
    }

    fn structs(
        library: NativeLibrary,
        entry: String,
        interface: CInterface,
        module: &LibraryModule,
    ) -> Result<AotModule, Error> {
        if interface.has_devices {
            return Err(Error::Unsupported("handles of devices".to_owned()));
        }
        if interface.maps_io {
            return Err(Error::Unsupported("inputs and outputs in its memory pools".to_owned()));
        }
        let from_relay = relay_inputs(module)?;
        let (sizes_in, sizes_out) = (listed(module.info(), true), listed(module.info(), false));
        let find = |specs: &[IoSpec], name: &String| {
            let same = |spec: &&IoSpec| sanitised(&spec.name) == *name;
            specs.iter().find(same).and_then(|spec| spec.operand.clone())
        };
        let inputs = interface.inputs.iter().map(|name| IoSpec {
            name: name.clone(),
            operand: find(&sizes_in, name).or_else(|| find(&from_relay, name)),
        });
        let outputs =
            interface.outputs.iter().map(|name| IoSpec { name: name.clone(), operand: find(&sizes_out, name) });
        let pools: Option<Vec<_>> = interface.pools.iter().map(|pool| AlignedBytes::zeroed(pool.bytes)).collect();
        Ok(AotModule {
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            pools: pools.ok_or_else(|| Error::Unsupported("memory pools that there is no memory for".to_owned()))?,
            library,
            entry,
            convention: Convention::Structs,
        })
    }

    /// The inputs, in order, as far as the package says. Of a single operator all arguments.
    pub fn inputs(&self) -> &[IoSpec] {
        &self.inputs
    }

    /// The outputs, in order; none if the package does not say.
    pub fn outputs(&self) -> &[IoSpec] {
        &self.outputs
    }

    /// Runs it. What the package says about tensors is checked against these. What it does not say, the
    /// caller of [`Options::allow_native_code`] answers for: the code reads and writes its tensors without a look at their
    /// sizes.
    pub fn run(&mut self, inputs: &[(&Operand, &[u8])], outputs: &mut [(Operand, AlignedBytes)]) -> Result<(), Error> {
        self.check(inputs, outputs)?;
        let mut input_pointers: Vec<*mut c_void> =
            inputs.iter().map(|(_, bytes)| bytes.as_ptr().cast_mut().cast()).collect();
        let mut output_pointers: Vec<*mut c_void> =
            outputs.iter_mut().map(|(_, bytes)| bytes.as_mut_slice().as_mut_ptr().cast()).collect();
        match self.convention {
            Convention::Packed => {
                let operands =
                    inputs.iter().map(|(operand, _)| *operand).chain(outputs.iter().map(|(operand, _)| operand));
                let pointers = input_pointers.into_iter().chain(output_pointers);
                let tensors: Vec<TensorArg<'_>> =
                    operands.zip(pointers).map(|(operand, data)| TensorArg { operand, data }).collect();
                self.library.call(&self.entry, &tensors)
            }
            Convention::Structs => {
                let mut pools: Vec<*mut c_void> =
                    self.pools.iter_mut().map(|pool| pool.as_mut_slice().as_mut_ptr().cast()).collect();
                let missing = || Error::Symbol(self.entry.clone());
                // SAFETY: the header declares the structs, whose members are pointers, in this order; that the code keeps
                // to the bytes of these tensors is what allowing native code trusts it with.
                let code = unsafe {
                    if pools.is_empty() {
                        let entry = self.library.symbol::<Entry1>(&self.entry).ok_or_else(missing)?;
                        entry(input_pointers.as_mut_ptr(), output_pointers.as_mut_ptr())
                    } else {
                        let entry = self.library.symbol::<Entry2>(&self.entry).ok_or_else(missing)?;
                        entry(input_pointers.as_mut_ptr(), output_pointers.as_mut_ptr(), pools.as_mut_ptr())
                    }
                };
                if code == 0 { Ok(()) } else { Err(self.library.failure(&self.entry, code)) }
            }
        }
    }

    /// Tensors against what the package says.
    fn check(&self, inputs: &[(&Operand, &[u8])], outputs: &[(Operand, AlignedBytes)]) -> Result<(), Error> {
        for (operand, len) in inputs
            .iter()
            .map(|(operand, bytes)| (*operand, bytes.len()))
            .chain(outputs.iter().map(|(operand, bytes)| (operand, bytes.len())))
        {
            if len < operand.byte_len() {
                return Err(Error::Arguments(format!("{len} bytes for {operand}")));
            }
        }
        // A single operator's arguments are listed together.
        let lone = self.outputs.is_empty() && self.convention == Convention::Packed && self.inputs.len() > inputs.len();
        let (want_in, want_out) = match lone && self.inputs.len() == inputs.len() + outputs.len() {
            true => self.inputs.split_at(inputs.len()),
            false => (self.inputs.as_slice(), self.outputs.as_slice()),
        };
        let have_in: Vec<&Operand> = inputs.iter().map(|(operand, _)| *operand).collect();
        let have_out: Vec<&Operand> = outputs.iter().map(|(operand, _)| operand).collect();
        for (what, want, have) in [("inputs", want_in, have_in), ("outputs", want_out, have_out)] {
            // Without a word from the package the caller's promise holds.
            if want.is_empty() {
                continue;
            }
            if want.len() != have.len() {
                return Err(Error::Arguments(format!("{} {what}, the module has {}", have.len(), want.len())));
            }
            for (want, have) in want.iter().zip(have) {
                if let Some(operand) = &want.operand
                    && (operand.data_type() != have.data_type() || operand.byte_len() != have.byte_len())
                {
                    return Err(Error::Arguments(format!("{}: {have} where the module has {operand}", want.name)));
                }
            }
        }
        Ok(())
    }
}

/// A buffer of a single operator.
fn of_buffer(buffer: &BufferInfo) -> IoSpec {
    IoSpec {
        name: buffer.input_binding.clone().unwrap_or_default(),
        operand: buffer.dtype.parse().ok().and_then(|data_type| Operand::new(data_type, &buffer.shape)),
    }
}

/// As names of tensors become members of structs.
fn sanitised(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns the inputs and outputs that the code's own table states.
fn described(library: &NativeLibrary, info: &Module) -> Option<(Vec<IoSpec>, Vec<IoSpec>)> {
    let names = [format!("{}_get_c_metadata", info.prefix()), "get_c_metadata".to_owned()];
    let function = names.iter().find_map(|name| library.packed(name))?;
    // SAFETY: generated code has this function under this name, and the caller has agreed to run it.
    let (inputs, outputs) = unsafe { abi::metadata(function) }?;
    let spec = |(name, (code, bits, lanes), shape): Described| {
        let shape: Option<Vec<u64>> = shape.into_iter().map(|size| u64::try_from(size).ok()).collect();
        let data_type = Class::from_code(code).and_then(|class| DataType::new(class, bits, lanes));
        IoSpec { name, operand: data_type.zip(shape).and_then(|(data_type, shape)| Operand::new(data_type, &shape)) }
    };
    if inputs.is_empty() && outputs.is_empty() {
        return None;
    }
    Some((inputs.into_iter().map(spec).collect(), outputs.into_iter().map(spec).collect()))
}

/// Returns the inputs or outputs that the metadata list, in one dimension: newer exporters list bytes and types.
fn listed(info: &Module, inputs: bool) -> Vec<IoSpec> {
    let Some(main) = info.memory.main.as_ref().and_then(|main| main.first()) else { return Vec::new() };
    let buffers = if inputs { &main.inputs } else { &main.outputs };
    let spec = |buffer: &edgepack_format::mlf::NamedBuffer| IoSpec {
        name: buffer.name.clone(),
        operand: buffer
            .dtype
            .parse::<DataType>()
            .ok()
            .and_then(|data_type| Operand::new(data_type, &[buffer.size.checked_div(data_type.bytes().max(1))?])),
    };
    buffers.iter().flatten().map(spec).collect()
}

/// Arguments of the model's text by name: its inputs, and parameters that were compiled in.
fn relay_inputs(module: &LibraryModule) -> Result<Vec<IoSpec>, Error> {
    let signature = module
        .relay()
        .map_or(Ok(None), relay::main_signature)
        .map_err(edgepack_loader::Error::from)?
        .unwrap_or_default();
    let spec = |argument: relay::Argument| IoSpec {
        operand: argument.tensor.and_then(|(data_type, shape)| Operand::new(data_type, &shape)),
        name: argument.name,
    };
    Ok(signature.arguments.into_iter().map(spec).collect())
}
