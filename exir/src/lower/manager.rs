//! Conversion of several programs to one file: conversion, custom passes, delegation, emission.

use edgepack_builder::NamedDataStore;
use edgepack_builder::content::Data;
use edgepack_builder::preprocess::{Preprocess, Subgraph, preprocess};
use edgepack_builder::pte::{Arg, BuiltProgram, ProgramBuilder};
use edgepack_format::finding::Findings;
use edgepack_format::pte::CompileSpec;
use edgepack_format::row::Blob;
use edgepack_format::rules::exir;

use super::origin::Names;
use super::partition::{LoweredModule, Partitioner, fuse};
use super::{Alignments, MethodOrigins, Options, begin_with, emit, origin, state, to_edge};
use crate::dtype::Table;
use crate::error::Error;
use crate::graph::{Dialect, ExportedProgram, LoweredPart, NamedData};
use crate::operators::Operators;
use crate::verify;

/// Changes a program of the Edge dialect in place.
pub trait Pass {
    /// Returns the name of the pass in errors.
    fn name(&self) -> &str;

    /// Does it.
    fn run(&self, program: &mut ExportedProgram<'_>) -> Result<(), Error>;
}

/// One of the programs.
pub(super) struct Method<'d> {
    name: String,
    program: ExportedProgram<'d>,
    modules: Vec<LoweredModule<'d>>,
    names: Names,
}

/// Programs in one file.
pub struct Lowered<'d> {
    /// Program, laid out and verified; contents are read when it is written.
    pub program: BuiltProgram<'d>,
    /// Origins of the instructions of each method.
    pub origins: Vec<MethodOrigins>,
}

/// Programs that go into one file, by method name.
pub struct ProgramManager<'d> {
    methods: Vec<Method<'d>>,
    store: NamedDataStore<'d>,
    options: Options,
    /// The operators that are whole until backends had their turn; `None` if there are none.
    whole: Option<Operators>,
}

impl<'d> ProgramManager<'d> {
    /// No programs yet.
    pub fn new(options: Options) -> Self {
        ProgramManager { methods: Vec::new(), store: NamedDataStore::new(), options, whole: None }
    }

    /// Leaves composite operators whole in the programs that are added from now on, by full name: a backend looks for
    /// them. Those that no backend took are written out before emission.
    pub fn keep_whole<'n>(&mut self, full_names: impl IntoIterator<Item = &'n str>) -> &mut Self {
        self.whole.get_or_insert_with(|| self.options.operators.clone()).keep(full_names);
        self
    }

    /// Writes out the composites that were whole for backends.
    fn write_out(&mut self) -> Result<(), Error> {
        if self.whole.take().is_none() {
            return Ok(());
        }
        for method in &mut self.methods {
            method.program = to_edge(method.program.clone(), &self.options)?;
        }
        Ok(())
    }

    /// Adds a program as a method, converted to the Edge dialect.
    pub fn add(&mut self, name: &str, mut program: ExportedProgram<'d>) -> Result<&mut Self, Error> {
        if self.methods.iter().any(|method| method.name == name) {
            return Err(Error::program(format!("method `{name}`"), "there are two of that name"));
        }
        let names = origin::number(&mut program.graph);
        begin_with(&mut program, &self.options.state)?;
        let mut program = match &self.whole {
            Some(operators) => to_edge(program, &Options { operators: operators.clone(), ..self.options.clone() })?,
            None => to_edge(program, &self.options)?,
        };
        let mut modules = Vec::new();
        for part in std::mem::take(&mut program.about.modules) {
            for data in part.named_data {
                let (bytes, file) = (Data::from(data.bytes.to_vec()), data.file.as_deref());
                match data.layout {
                    Some(layout) => self.store.add_with_layout(&data.key, bytes, layout, data.alignment, file)?,
                    None => self.store.add(&data.key, bytes, data.alignment, file)?,
                }
            }
            let spec = |(key, value): (String, Vec<u8>)| CompileSpec {
                key: Some(key.into()),
                value: Some(Blob(value.into())),
            };
            modules.push(LoweredModule {
                backend: part.backend,
                specs: part.specs.into_iter().map(spec).collect(),
                program: None,
                original: part.original,
                payload: part.payload.map(|payload| Data::from(payload.to_vec())),
            });
        }
        self.methods.push(Method { name: name.to_owned(), program, modules, names });
        Ok(self)
    }

    /// Adds a method that takes nothing and gives these values, unless there is one of that name: what runners ask a model
    /// for.
    pub fn constant_method(&mut self, name: &str, values: Vec<Arg>) -> &mut Self {
        if !self.options.constant_methods.iter().any(|(known, _)| known == name) {
            self.options.constant_methods.push((name.to_owned(), values));
        }
        self
    }

    /// The names of the methods.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.methods.iter().map(|method| method.name.as_str())
    }

    /// A method as it is now.
    pub fn program(&self, name: &str) -> Option<&ExportedProgram<'d>> {
        self.methods.iter().find(|method| method.name == name).map(|method| &method.program)
    }

    /// A method as a program that can be [written](ExportedProgram::save_serde), with what backends made of its parts.
    pub fn export(&self, name: &str) -> Result<ExportedProgram<'d>, Error> {
        let method = self.methods.iter().find(|method| method.name == name);
        let method = method.ok_or_else(|| Error::program(format!("method `{name}`"), "there is none of that name"))?;
        let mut program = method.program.clone();
        let mut named_data = Vec::new();
        for entry in self.store.entries() {
            let bytes = self.store.buffers().get(entry.buffer).map(Data::to_vec).transpose()?.unwrap_or_default();
            named_data.push(NamedData {
                key: entry.key.clone(),
                bytes: bytes.into(),
                alignment: entry.alignment,
                file: entry.tag.clone(),
                layout: entry.layout.clone(),
            });
        }
        for (index, module) in method.modules.iter().enumerate() {
            let spec = |spec: &CompileSpec<'_>| {
                let value = spec.value.as_ref().map_or(Vec::new(), |value| value.as_slice().to_vec());
                (spec.key.as_deref().unwrap_or_default().to_owned(), value)
            };
            program.about.modules.push(LoweredPart {
                name: format!("lowered_module_{index}"),
                backend: module.backend.clone(),
                specs: module.specs.iter().map(spec).collect(),
                payload: module.payload.as_ref().map(Data::to_vec).transpose()?.map(Into::into),
                // A key belongs to the whole file, so one module may bring all of them.
                named_data: std::mem::take(&mut named_data),
                original: match &module.program {
                    Some(part) => crate::archive::original(part)?,
                    None => module.original.clone(),
                },
            });
        }
        Ok(program)
    }

    /// Runs passes over every method, in order. A program must be as valid after each as before.
    /// Operators outside the core set are no error: what a backend takes, or a kernel runs, need not be in it.
    pub fn transform(&mut self, passes: &[&dyn Pass]) -> Result<&mut Self, Error> {
        for pass in passes {
            for method in &mut self.methods {
                let mut program = method.program.clone();
                pass.run(&mut program)?;
                let place = format!("method `{}` after pass `{}`", method.name, pass.name());
                program.graph.check().map_err(|error| Error::program(&place, error.to_string()))?;
                let findings = verify::verify(&program, &rules(&self.options));
                if findings.has_errors() {
                    return Err(Error::program(place, findings.to_string()));
                }
                method.program = program;
            }
        }
        Ok(self)
    }

    /// Runs passes of backends over every method: they change no rule that a program keeps or breaks.
    pub(crate) fn prepare(&mut self, passes: &[&dyn Pass]) -> Result<(), Error> {
        for pass in passes {
            self.change(|program| pass.run(program))?;
        }
        Ok(())
    }

    /// Changes every method, and answers with what the function answers for each.
    pub fn change<T>(
        &mut self,
        mut change: impl FnMut(&mut ExportedProgram<'_>) -> Result<T, Error>,
    ) -> Result<Vec<(String, T)>, Error> {
        let mut answers = Vec::with_capacity(self.methods.len());
        for method in &mut self.methods {
            let answer = change(&mut method.program)?;
            let place = || format!("method `{}`", method.name);
            method.program.graph.check().map_err(|error| Error::program(place(), error.to_string()))?;
            answers.push((method.name.clone(), answer));
        }
        Ok(answers)
    }

    /// Verifies every method against the rules of the Edge dialect.
    pub fn verify(&self) -> Findings {
        let mut all = Findings::new(&edgepack_format::limits::Limits::DEFAULT);
        for method in &self.methods {
            all.extend(verify::verify(&method.program, &rules(&self.options)).moved(&method.name, 0));
        }
        all
    }

    /// Gives parts of every method to a backend: the partitioner says which, the backend makes their payloads, all at once.
    pub fn delegate(
        &mut self,
        partitioner: &dyn Partitioner,
        backend: &dyn Preprocess<ExportedProgram<'d>>,
    ) -> Result<&mut Self, Error> {
        let mut changed = Vec::with_capacity(self.methods.len());
        for method in &self.methods {
            let mut program = method.program.clone();
            let parts = partitioner.partition(&method.program)?;
            let orders = emit::orders_of(&method.program, &self.options);
            let modules = fuse(&mut program, parts, backend.backend(), method.modules.len(), &orders)?;
            changed.push((program, modules));
        }
        let mut parts = Vec::new();
        for (method, (_, modules)) in self.methods.iter().zip(&changed) {
            for (index, module) in modules.iter().enumerate() {
                let Some(graph) = &module.program else { continue };
                let specs = module.specs.as_slice();
                parts.push(Subgraph { method: &method.name, index, graph, specs });
            }
        }
        let mut processed = preprocess(backend, &parts, &mut self.store)?.into_iter();
        drop(parts);
        for (method, (program, modules)) in self.methods.iter_mut().zip(changed) {
            method.program = program;
            for mut module in modules {
                module.payload = processed.next().map(|processed| processed.payload().clone());
                method.modules.push(module);
            }
        }
        Ok(self)
    }

    /// Emits all methods into one file.
    pub fn finish(self) -> Result<BuiltProgram<'d>, Error> {
        Ok(self.emit()?.program)
    }

    /// Emits all methods into one file, and says where each instruction comes from.
    pub fn emit(mut self) -> Result<Lowered<'d>, Error> {
        self.write_out()?;
        state::check(&self.options.state, self.methods.iter().map(|method| &method.program))?;
        if self.options.edge_table.is_some() {
            self.check_types()?;
        }
        let mut builder = ProgramBuilder::new();
        builder.strategy(self.options.strategy);
        let Alignments { segment, tensor, delegate, memory } = self.options.alignments;
        segment.map(|align| builder.segment_alignment(align).map(drop)).transpose()?;
        tensor.map(|align| builder.tensor_alignment(align).map(drop)).transpose()?;
        delegate.map(|align| builder.delegate_alignment(align).map(drop)).transpose()?;
        memory.map(|align| builder.memory_alignment(align).map(drop)).transpose()?;
        let mut origins = Vec::with_capacity(self.methods.len());
        for Method { name, program, modules, names } in &self.methods {
            let instructions = emit::method(&mut builder, name, program, modules, names, &self.options)?;
            origins.push(MethodOrigins { method: name.clone(), instructions });
        }
        for (name, values) in self.options.constant_methods {
            builder.getter(&name, values)?;
        }
        builder.merge_named_data(self.store)?;
        Ok(Lowered { program: builder.finish()?, origins })
    }

    /// Holds the element types of every method against the table.
    fn check_types(&self) -> Result<(), Error> {
        for method in &self.methods {
            let findings = verify::verify(&method.program, &rules(&self.options));
            let wrong: Vec<String> =
                findings.iter().filter(|finding| finding.rule == &exir::DTYPES).map(ToString::to_string).collect();
            if !wrong.is_empty() {
                return Err(Error::program(format!("method `{}`", method.name), wrong.join("\n")));
            }
        }
        Ok(())
    }
}

/// Rules that programs are checked against between conversion and emission.
fn rules(options: &Options) -> verify::Options<'_> {
    let table = options.edge_table.as_deref().unwrap_or_else(|| Table::built_in());
    verify::Options { table, ..verify::Options::new(&options.operators).dialect(Dialect::Edge) }
}
