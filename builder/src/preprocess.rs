//! Export side of a backend: parts of graphs in, payloads and named data out.
//!
//! Generic in the graph, so that an export IR, or a test's own structure, plugs in. One result per part, in the same
//! order, each made from the part it answers: that is checked, not assumed.

use edgepack_format::pte::CompileSpec;

use crate::build_error::BuildError;
use crate::content::Data;
use crate::named_data::NamedDataStore;

/// A part of a method that a backend is to run.
#[derive(Debug)]
pub struct Subgraph<'g, Graph: ?Sized> {
    /// Name of the method that the part belongs to.
    pub method: &'g str,
    /// Index of the part among the method's parts for this backend.
    pub index: usize,
    /// Content of the part, in the form of the caller's export IR.
    pub graph: &'g Graph,
    /// Options for the backend.
    pub specs: &'g [CompileSpec<'g>],
}

// Derived, these would ask the graph to be `Clone` although only a reference is copied.
impl<Graph: ?Sized> Clone for Subgraph<'_, Graph> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Graph: ?Sized> Copy for Subgraph<'_, Graph> {}

impl<Graph: ?Sized> Subgraph<'_, Graph> {
    /// The result for this part.
    pub fn processed<'d>(&self, payload: impl Into<Data<'d>>) -> Processed<'d> {
        Processed { method: self.method.to_owned(), index: self.index, payload: payload.into() }
    }

    fn place(&self) -> String {
        format!("part {} of method `{}`", self.index, self.method)
    }
}

/// Result of a backend for one [`Subgraph`].
#[derive(Clone, Debug)]
pub struct Processed<'d> {
    method: String,
    index: usize,
    payload: Data<'d>,
}

impl<'d> Processed<'d> {
    /// The method its part belongs to.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the index of the part among the method's parts for this backend.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the payload that the backend will be given at load.
    pub fn payload(&self) -> &Data<'d> {
        &self.payload
    }
}

/// Reason a backend cannot make a payload, as the backend words it.
pub type PreprocessError = Box<dyn std::error::Error + Send + Sync>;

/// A backend's part at export.
///
/// A backend that shares data between its parts overrides [`Preprocess::preprocess_all`], which sees them all at once;
/// for others [`Preprocess::preprocess`] is enough. Data that several parts, or methods, use go into the store.
pub trait Preprocess<Graph: ?Sized> {
    /// The name of the backend, as delegates give it.
    fn backend(&self) -> &str;

    /// Makes the payload of one part.
    fn preprocess<'d>(
        &self,
        graph: &Graph,
        specs: &[CompileSpec<'_>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Data<'d>, PreprocessError>;

    /// Makes the payloads of all parts of all methods: one each, in the same order.
    fn preprocess_all<'d>(
        &self,
        parts: &[Subgraph<'_, Graph>],
        store: &mut NamedDataStore<'d>,
    ) -> Result<Vec<Processed<'d>>, PreprocessError> {
        parts.iter().map(|part| Ok(part.processed(self.preprocess(part.graph, part.specs, store)?))).collect()
    }
}

/// Lets a backend make its payloads, and holds what it gives against what it was asked. If anything fails the store is as
/// before.
pub fn preprocess<'d, Graph: ?Sized>(
    backend: &dyn Preprocess<Graph>,
    parts: &[Subgraph<'_, Graph>],
    store: &mut NamedDataStore<'d>,
) -> Result<Vec<Processed<'d>>, BuildError> {
    let refuse = |message: String| BuildError::Backend { backend: backend.backend().to_owned(), message };
    let mut filled = store.clone();
    let results = backend.preprocess_all(parts, &mut filled).map_err(|error| refuse(error.to_string()))?;
    if results.len() != parts.len() {
        return Err(refuse(format!("{} results for {} parts", results.len(), parts.len())));
    }
    for (result, part) in results.iter().zip(parts) {
        if (result.method.as_str(), result.index) != (part.method, part.index) {
            let found = format!("part {} of method `{}`", result.index, result.method);
            return Err(refuse(format!("the result of {found} stands where that of {} belongs", part.place())));
        }
    }
    *store = filled;
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph that is a list of weights; its payload names them.
    struct Packer(Fault);

    #[derive(PartialEq)]
    enum Fault {
        None,
        Fail,
        Few,
        Swap,
    }

    impl Preprocess<[u8]> for Packer {
        fn backend(&self) -> &str {
            "Packer"
        }

        fn preprocess<'d>(
            &self,
            graph: &[u8],
            specs: &[CompileSpec<'_>],
            store: &mut NamedDataStore<'d>,
        ) -> Result<Data<'d>, PreprocessError> {
            let key = format!("w{}", graph.len());
            store.add(&key, graph.to_vec(), 16, None)?;
            if self.0 == Fault::Fail && graph.len() > 1 {
                return Err("too many weights".into());
            }
            Ok(Data::from(format!("{key} {}", specs.len()).into_bytes()))
        }

        fn preprocess_all<'d>(
            &self,
            parts: &[Subgraph<'_, [u8]>],
            store: &mut NamedDataStore<'d>,
        ) -> Result<Vec<Processed<'d>>, PreprocessError> {
            let one = |part: &Subgraph<'_, [u8]>| Ok(part.processed(self.preprocess(part.graph, part.specs, store)?));
            let mut results = parts.iter().map(one).collect::<Result<Vec<_>, PreprocessError>>()?;
            match self.0 {
                Fault::Few => drop(results.pop()),
                Fault::Swap => results.reverse(),
                _ => {}
            }
            Ok(results)
        }
    }

    fn run(fault: Fault) -> (Result<Vec<Processed<'static>>, BuildError>, usize) {
        let mut store = NamedDataStore::new();
        let part = |method, index, graph| Subgraph { method, index, graph, specs: &[] };
        let parts: [Subgraph<'_, [u8]>; 3] =
            [part("decode", 0, &[1u8][..]), part("prefill", 0, &[1]), part("prefill", 1, &[1, 2])];
        let results = preprocess(&Packer(fault), &parts, &mut store);
        (results, store.entries().len())
    }

    #[test]
    fn one_result_per_part_and_shared_data_once() {
        let (results, entries) = run(Fault::None);
        let payloads: Vec<_> = results.unwrap().iter().map(|result| result.payload().to_vec().unwrap()).collect();
        assert_eq!(payloads, [b"w1 0", b"w1 0", b"w2 0"]);
        assert_eq!(entries, 2);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_the_store_stays() {
        for (fault, want) in [
            (Fault::Fail, "backend `Packer`: too many weights"),
            (Fault::Few, "backend `Packer`: 2 results for 3 parts"),
            (
                Fault::Swap,
                "backend `Packer`: the result of part 1 of method `prefill` stands where that of part 0 of method `decode` belongs",
            ),
        ] {
            let (results, entries) = run(fault);
            assert_eq!((results.unwrap_err().to_string().as_str(), entries), (want, 0));
        }
    }
}
