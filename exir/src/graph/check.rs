//! Invariants that rewriting relies on: values are made once, and before they are read.

use super::{Argument, Graph, ValueId};
use crate::error::Error;

impl Graph {
    /// Checks that every value is made once and before it is read, in sub-graphs too.
    pub fn check(&self) -> Result<(), Error> {
        let mut made = vec![false; self.values.len()];
        for input in &self.inputs {
            self.once(input, &mut made, "inputs")?;
        }
        for node in &self.nodes {
            for input in &node.inputs {
                self.read(&input.arg, &made, &node.name)?;
                if let Argument::Graph(_, inner) = &input.arg {
                    inner.check()?;
                }
            }
            for output in &node.outputs {
                self.once(output, &mut made, &node.name)?;
            }
        }
        self.outputs.iter().try_for_each(|output| self.read(output, &made, "outputs"))
    }

    fn once(&self, argument: &Argument, made: &mut [bool], place: &str) -> Result<(), Error> {
        let mut again: Option<ValueId> = None;
        argument.each_value(&mut |id| match made.get_mut(id.index()) {
            Some(made) if !*made => *made = true,
            _ => again = Some(id),
        });
        match again {
            None => Ok(()),
            Some(id) => Err(Error::program(place, format!("`{}` is made a second time", self.name(id)))),
        }
    }

    fn read(&self, argument: &Argument, made: &[bool], place: &str) -> Result<(), Error> {
        let mut early: Option<ValueId> = None;
        argument.each_value(&mut |id| {
            if !made.get(id.index()).copied().unwrap_or(false) {
                early = Some(id);
            }
        });
        match early {
            None => Ok(()),
            Some(id) => Err(Error::program(place, format!("`{}` is read before it is made", self.name(id)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::TensorMeta;
    use edgepack_format::scalar::ScalarType;

    #[test]
    fn order_is_checked() {
        let meta = || TensorMeta::contiguous(ScalarType::FLOAT, &[]);
        let mut graph = Graph::default();
        let x = graph.add_input("x", meta());
        let y = graph.call("aten::relu", [("self", x.into())], meta());
        let z = graph.call("aten::neg", [("self", y.into())], meta());
        graph.outputs.push(z.into());
        assert!(graph.check().is_ok());
        let mut turned = graph.clone();
        turned.nodes.reverse();
        assert!(turned.check().unwrap_err().to_string().contains("before it is made"));
        let mut twice = graph.clone();
        twice.nodes.push(graph.nodes[0].clone());
        assert!(twice.check().unwrap_err().to_string().contains("a second time"));
        let mut itself = graph;
        itself.nodes[0].outputs = vec![x.into()];
        assert!(itself.check().is_err());
    }
}
