//! Reports about values and nodes, with their place in the structure and in the file.

use alloc::string::String;

use crate::check::{Checker, Path};
use crate::finding::Rule;
use crate::xnnpack::payload::Payload;
use crate::xnnpack::tables::Value;

/// The payload that rules about meaning look at, and the findings they add to.
pub(super) struct Report<'v, 'a> {
    pub payload: &'v Payload<'a>,
    /// The place of the payload.
    pub path: &'v Path<'v>,
    pub out: &'v mut Checker,
}

impl<'v, 'a> Report<'v, 'a> {
    /// About a field of the tensor of value `index`, or about the value.
    pub fn value(&mut self, rule: &'static Rule, index: usize, field: &'static str, message: String) {
        let path = self.path.field("xvalues");
        let path = path.index(index);
        let path = path.field("xvalue_union");
        let is_quantized = self.payload.values.get(index).is_some_and(Value::is_quantized);
        let tensor = path.field("tensor_value");
        let path = if is_quantized { &tensor } else { &path };
        self.out.report(rule, &path.field(field), self.value_offset(index), message);
    }

    /// About value `index` as a whole.
    pub fn whole_value(&mut self, rule: &'static Rule, index: usize, message: String) {
        let path = self.path.field("xvalues");
        self.out.report(rule, &path.index(index), self.value_offset(index), message);
    }

    /// About a field of the quantisation of value `index`.
    pub fn params(&mut self, rule: &'static Rule, index: usize, field: &'static str, message: String) {
        let path = self.path.field("xvalues");
        let path = path.index(index);
        let path = path.field("xvalue_union");
        let path = path.field("quant_params");
        self.out.report(rule, &path.field(field), self.value_offset(index), message);
    }

    /// About the quantisation of value `index` as a whole.
    pub fn whole_params(&mut self, rule: &'static Rule, index: usize, message: String) {
        let path = self.path.field("xvalues");
        let path = path.index(index);
        let path = path.field("xvalue_union");
        self.out.report(rule, &path.field("quant_params"), self.value_offset(index), message);
    }

    /// About node `index`.
    pub fn node(&mut self, rule: &'static Rule, index: usize, message: String) {
        let tables = self.payload.graph.xnodes.as_ref().map(|rows| rows.tables());
        let offset = tables.and_then(|tables| tables.get(index).ok()).map(|table| table.offset());
        let path = self.path.field("xnodes");
        self.out.report(rule, &path.index(index), offset, message);
    }

    /// About constant `index`.
    pub fn constant(&mut self, rule: &'static Rule, index: usize, message: String) {
        let path = self.path.field("constant_data");
        let tables = self.payload.graph.constant_data.as_ref().map(|rows| rows.tables());
        let offset = tables.and_then(|tables| tables.get(index).ok()).map(|table| table.offset());
        self.out.report(rule, &path.index(index), offset, message);
    }

    /// About a list of the graph.
    pub fn list(&mut self, rule: &'static Rule, field: &'static str, message: String) {
        self.out.report(rule, &self.path.field(field), None, message);
    }

    fn value_offset(&self, index: usize) -> Option<u32> {
        let tables = self.payload.graph.xvalues.as_ref()?.tables();
        tables.get(index).ok().map(|table| table.offset())
    }

    /// The value that nodes call so.
    pub fn find(&self, id: u32) -> Option<&'v Value<'a>> {
        self.payload.value(id)
    }
}
