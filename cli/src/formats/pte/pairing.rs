//! Findings about a program and its data files together; each of them is verified by itself elsewhere.

use std::collections::HashMap;

use edgepack_format::finding::{Finding, Findings, Rule};
use edgepack_format::limits::Limits;
use edgepack_format::ptd::verify::verify;
use edgepack_format::ptd::{Accept, DataRef, MissingData};
use edgepack_format::pte::{KernelTypes, Tensor, TensorDataLocation};
use edgepack_format::rules::ptd::{PAIR_DUPLICATE, PAIR_LAYOUT, PAIR_MISSING};
use edgepack_format::tensor::TensorLayout;
use edgepack_format::wire;

use super::tables;
use crate::formats::Head;
use crate::readable;

/// Checks the program with that root table together with its data files.
pub fn pairing(root: Option<wire::Table<'_>>, data: &[&Head], limits: &Limits) -> Findings {
    let findings = Findings::new(limits);
    let mut pairing = Pairing {
        findings,
        wanted: MissingData::default(),
        missing: Vec::new(),
        places: HashMap::new(),
        data: Vec::new(),
    };
    let Some(root) = root else { return pairing.findings };
    let program = tables::program(&root);
    for entry in readable::rows(&program.named_data).into_iter().flatten() {
        pairing.key(&entry.key.unwrap_or_default(), "the program");
    }
    for head in data {
        if let Some(data) = verify(&head.bytes, head.file.head.extent, limits, Accept::ALL).data {
            data.keys().iter().for_each(|key| pairing.key(key, &head.file.name));
            pairing.data.push(data);
        }
    }
    for (method, plan) in tables::plans(&program).iter().enumerate() {
        let Some(values) = &plan.values else { continue };
        for (index, table) in values.tables().iter().enumerate() {
            let path = || format!("execution_plan[{method}].values[{index}]");
            pairing.value(table, path);
        }
    }
    pairing.report_missing(data);
    pairing.findings
}

/// A value whose data are not there.
struct Missing {
    path: String,
    offset: Option<u64>,
    key: String,
}

struct Pairing<'a> {
    findings: Findings,
    /// All values that are looked up by key.
    wanted: MissingData,
    /// Those whose key is in none of the data files.
    missing: Vec<Missing>,
    /// Place of the first holder of each key.
    places: HashMap<String, String>,
    data: Vec<DataRef<'a>>,
}

impl Pairing<'_> {
    fn report(&mut self, rule: &'static Rule, path: String, offset: Option<u64>, message: String) {
        self.findings.push(Finding { rule, path, offset, message });
    }

    fn key(&mut self, key: &str, place: &str) {
        match self.places.get(key) {
            None => {
                self.places.insert(key.to_owned(), place.to_owned());
            }
            Some(first) => {
                let message = format!("{key:?} is in {first} and in {place}");
                self.report(&PAIR_DUPLICATE, "named_data".to_owned(), None, message);
            }
        }
    }

    fn value(&mut self, table: wire::Result<wire::Table<'_>>, path: impl Fn() -> String) {
        let Ok(table) = table else { return };
        let value = table.get(edgepack_format::pte::EValue::VAL);
        let Ok(Some(KernelTypes::Tensor(tensor))) = value else { return };
        let Some(info) = &tensor.extra_tensor_info else { return };
        if info.location != TensorDataLocation::EXTERNAL {
            return;
        }
        let key = info.fully_qualified_name.as_deref().unwrap_or_default();
        let offset = Some(u64::from(table.offset()));
        let found = self.data.iter().find_map(|data| data.lookup(key));
        self.wanted.wants(key, found.is_some());
        let Some(entry) = found else {
            return self.missing.push(Missing { path: path(), offset, key: key.to_owned() });
        };
        let message = match (&entry.layout, layout(&tensor)) {
            (Some(have), Some(want)) if *have == want => return,
            (Some(have), Some(want)) => format!("{key:?} is {have}, the program has {want}"),
            (None, Some(want)) => format!("{key:?} is not a tensor, the program has {want}"),
            // The tensor itself is broken; its own rules say so.
            (_, None) => return,
        };
        self.report(&PAIR_LAYOUT, path(), offset, message);
    }
}

impl Pairing<'_> {
    /// Reports keys that are missing: one by one, or in one word if the data files are of another model.
    fn report_missing(&mut self, files: &[&Head]) {
        let missing = std::mem::take(&mut self.missing);
        match (missing.first(), self.data.iter().find_map(|data| data.keys().first().cloned())) {
            (Some(first), Some(other)) if self.wanted.is_foreign() => {
                let names: Vec<&str> = files.iter().map(|head| head.file.name.as_str()).collect();
                let message = format!("{}: {}", names.join(", "), self.wanted.described(Some(other)));
                self.report(&PAIR_MISSING, first.path.clone(), first.offset, message);
            }
            _ => {
                for Missing { path, offset, key } in missing {
                    self.report(&PAIR_MISSING, path, offset, format!("{key:?} is in none of the data files"));
                }
            }
        }
    }
}

fn layout(tensor: &Tensor<'_>) -> Option<TensorLayout> {
    let order: Vec<u8> = tensor.dim_order.as_ref()?.iter().collect();
    TensorLayout::from_wire(tensor.scalar_type, tensor.sizes.as_ref()?.iter(), &order).ok()
}
