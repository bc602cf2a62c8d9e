//! Delegates: payloads that backends run.

use edgepack_format::pte::{CompileSpec, DataLocation};
use edgepack_format::row::Blob;

use super::args::{Arg, DelegateId};
use super::method::MethodBuilder;
use super::parts::{Delegate, Step};
use super::spec::Outs;
use crate::build_error::BuildError;
use crate::content::Data;
use crate::pte::specs::Specs;

/// An option for a backend.
pub fn compile_spec(key: impl Into<String>, value: impl Into<Vec<u8>>) -> CompileSpec<'static> {
    CompileSpec { key: Some(key.into().into()), value: Some(Blob(value.into().into())) }
}

impl<'d> MethodBuilder<'_, 'd> {
    /// Adds a delegate: a backend by name, what it made of its part of the graph, and its options.
    ///
    /// Options are taken by value or borrowed: `&[]`, `options.to_specs()`.
    ///
    /// Equal payloads are stored once, whichever delegates they belong to. An empty one stays inside the flatbuffer.
    pub fn delegate(
        &mut self,
        backend: &str,
        payload: impl Into<Data<'d>>,
        specs: impl Specs,
    ) -> Result<DelegateId, BuildError> {
        let payload = payload.into();
        let place = format!("delegate `{backend}` of {}", self.name());
        if backend.is_empty() {
            return Err(BuildError::Name { what: "a backend", name: String::new(), why: "it is empty" });
        }
        let specs = specs.specs().iter().enumerate().map(|(index, spec)| match (&spec.key, &spec.value) {
            (Some(key), Some(value)) => Ok(compile_spec(key.as_ref(), value.as_slice())),
            (key, _) => Err(BuildError::Kind {
                place: format!("compile spec {index} of {place}"),
                want: "a key and a value".to_owned(),
                found: if key.is_none() { "no key" } else { "no value" }.to_owned(),
            }),
        });
        let specs = specs.collect::<Result<Vec<_>, _>>()?;
        let location = self.payload_location(payload.is_empty());
        let pool = match location {
            DataLocation::INLINE => &mut self.program.inline_payloads,
            _ => &mut self.program.payloads,
        };
        let payload = pool.intern(payload).map_err(BuildError::reading(place))?;
        let delegate = Delegate { backend: backend.to_owned(), location, payload, specs };
        let (owner, index) = self.with(|method| {
            method.delegates.push(delegate);
            (Some(method.owner), method.delegates.len().saturating_sub(1))
        });
        owner.map(|owner| DelegateId { owner, index }).ok_or_else(|| self.foreign("a delegate", None))
    }

    /// Calls a delegate with arguments and results, which it finds in this order.
    pub fn call_delegate<O: Outs>(
        &mut self,
        delegate: DelegateId,
        args: impl IntoIterator<Item = Arg>,
        outs: O,
    ) -> Result<O::Ids, BuildError> {
        if self.method().is_none_or(|method| method.owner != delegate.owner) {
            return Err(self.foreign(format!("delegate {}", delegate.index), Some(delegate.owner)));
        }
        let place = format!("call of delegate {} of {}", delegate.index, self.name());
        let ready = outs.outs().into_iter().map(|out| self.ready(out, &place)).collect::<Result<Vec<_>, _>>()?;
        let mut stack = Vec::new();
        for arg in args {
            stack.push(self.materialise(arg, &place)?);
        }
        let mut ids = Vec::with_capacity(ready.len());
        for ready in ready {
            let index = self.receive(ready);
            stack.push(index);
            ids.push(self.id(index)?);
        }
        self.step(Step::Delegate { delegate: delegate.index, args: stack });
        O::ids(&ids).ok_or_else(|| BuildError::Count {
            place,
            what: "results",
            have: ids.len(),
            want: "another number".to_owned(),
        })
    }
}
