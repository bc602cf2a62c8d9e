//! The C interface header of a package: which tensors go in and out, which memory the caller brings.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::metadata::Module;
use crate::room;

/// Declarations of a header. All members of its structs are pointers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CInterface {
    /// Inputs, in order.
    pub inputs: Vec<String>,
    /// Outputs, in order.
    pub outputs: Vec<String>,
    /// Memory that the caller brings.
    pub pools: Vec<Pool>,
    /// True if the caller brings handles of devices.
    pub has_devices: bool,
    /// True if inputs and outputs are in the pools.
    pub maps_io: bool,
}

/// Memory that the caller brings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Its member in the struct.
    pub name: String,
    /// Length in bytes.
    pub bytes: usize,
}

impl CInterface {
    /// Parses the header of a module; `None` if it declares no such interface.
    ///
    /// # Errors
    ///
    /// There is no memory for what it declares.
    pub fn parse(header: &str, module: &Module) -> room::Result<Option<CInterface>> {
        let text = without_comments(header)?;
        let prefix = module.prefix();
        let members = |what: &str| members(&text, &format!("{prefix}_{what}"));
        let (Some(inputs), Some(outputs)) = (members("inputs")?, members("outputs")?) else { return Ok(None) };
        let pools = members("workspace_pools")?.unwrap_or_default();
        let size = |name: &String| {
            let macro_name = format!("{prefix}_{name}_WORKSPACE_POOL_SIZE").to_uppercase();
            Pool { name: name.clone(), bytes: defined(&text, &macro_name).unwrap_or(0) }
        };
        Ok(Some(CInterface {
            inputs,
            outputs,
            pools: room::collect(pools.iter().map(size))?,
            has_devices: members("devices")?.is_some(),
            maps_io: text.contains(&format!("{prefix}_map_inputs")),
        }))
    }
}

fn without_comments(text: &str) -> room::Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("/*") {
        room::push_str(&mut out, before)?;
        rest = behind.split_once("*/").map_or("", |(_, behind)| behind);
    }
    room::push_str(&mut out, rest)?;
    Ok(out)
}

/// The members of `struct name { void* a; void* b; }`.
fn members(text: &str, name: &str) -> room::Result<Option<Vec<String>>> {
    let start = format!("struct {name} {{");
    let body = text.split_once(&start).and_then(|(_, behind)| behind.split_once('}'));
    let Some((body, _)) = body else { return Ok(None) };
    let name = |member: &str| member.rsplit([' ', '*', '\n']).next().unwrap_or(member).to_owned();
    room::collect(body.split(';').map(str::trim).filter(|member| !member.is_empty()).map(name)).map(Some)
}

fn defined(text: &str, name: &str) -> Option<usize> {
    let mut lines = text.lines().map(|line| line.split_whitespace());
    lines.find_map(|mut words| {
        let found = words.next() == Some("#define") && words.next() == Some(name);
        found.then(|| words.next()?.trim_end_matches(['u', 'U', 'l', 'L']).parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_header_says_what_goes_in_and_out() {
        let header = "/* struct tvmgen_m_inputs { void* no; }; */
            struct tvmgen_m_inputs {
              void* a;
              void* b_1;
            };
            struct tvmgen_m_outputs { void* output; };
            struct tvmgen_m_workspace_pools { uint8_t* sram; };
            #define TVMGEN_M_SRAM_WORKSPACE_POOL_SIZE 640
            ";
        let module = Module { name: "m".into(), ..Module::default() };
        let found = CInterface::parse(header, &module).unwrap().unwrap();
        assert_eq!((found.inputs, found.outputs), (vec!["a".into(), "b_1".into()], vec!["output".into()]));
        assert_eq!(found.pools, [Pool { name: "sram".into(), bytes: 640 }]);
        assert!(!found.has_devices && !found.maps_io);
        assert_eq!(CInterface::parse("int x;", &module), Ok(None));
    }
}
