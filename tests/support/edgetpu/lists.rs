//! Lists of small cases: broken packages, custom options, packages that two readers read differently, signatures.

use std::path::Path;

use edgepack_builder::tflite::rewrite_options;
use edgepack_executor::darwinn::Output;
use edgepack_format::darwinn::{Accept, PackageRef, verify};
use edgepack_format::limits::Limits;
use edgepack_format::tflite::CustomOptions;
use edgepack_loader::{Registration, Registry};
use serde_json::Value;

use super::{Answer, json, same, sha256, splitmix};

/// A case of a list: its name, and what judges it.
pub type Listed = (String, Box<dyn FnOnce() -> Answer + Send>);

fn listed(
    folder: &Path,
    manifest: &str,
    run: impl Fn(&[u8], &Value) -> Answer + Clone + Send + 'static,
) -> Vec<Listed> {
    let path = folder.join(manifest);
    if !path.is_file() {
        return Vec::new();
    }
    let manifest = match json(&path) {
        Ok(manifest) => manifest,
        Err(error) => return vec![(path.display().to_string(), Box::new(|| Err(error)))],
    };
    let cases = manifest["cases"].as_array().cloned().unwrap_or_default();
    let one = |case: Value| -> Listed {
        let name = case["file"].as_str().unwrap_or_default().to_owned();
        let (path, run) = (folder.join(&name), run.clone());
        let judge = move || {
            let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
            run(&bytes, &case)
        };
        (name, Box::new(judge))
    };
    cases.into_iter().map(one).collect()
}

/// Every broken or doubtful package is answered as its list says.
pub fn broken(folder: &Path) -> Vec<Listed> {
    listed(&folder.join("malformed"), "manifest.json", |bytes, case| {
        let findings = verify::verify(bytes, &Limits::hostile(), Accept::default()).findings;
        let notable =
            findings.iter().any(|finding| finding.rule.severity == edgepack_format::finding::Severity::Warning);
        let registers = Registry::default().register(bytes).is_ok();
        let (errors, want) = (findings.has_errors(), case["sdk_expectation"].as_str().unwrap_or_default());
        let fits = match want {
            "reject" => errors && !registers,
            "warn" | "accept_with_warning" => !errors && notable && registers,
            "accept" => !errors && registers,
            "reject_or_warn" => errors || notable,
            "reject_for_registration" => !errors && !registers,
            "reject_for_hint_dma" => !errors && notable,
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("wanted {want}, registers: {registers}, findings:\n{findings}")) }
    })
}

/// Every custom-options blob is read or refused as the runtime's parser reads it, and written back to the byte.
pub fn options(folder: &Path) -> Vec<Listed> {
    listed(&folder.join("custom_options"), "manifest.json", |bytes, case| {
        let want = case["expect"].as_str().unwrap_or_default();
        let options = match CustomOptions::parse(bytes) {
            Ok(options) => options,
            Err(_) if want.starts_with("reject") => return Ok(()),
            Err(error) => return Err(format!("wanted {want}: {error}")),
        };
        if want.starts_with("reject") {
            return Err(format!("wanted {want}, got {:?}", options.keys));
        }
        same(
            "written",
            rewrite_options(&options, options.package.1).map_err(|error| error.to_string())? == bytes,
            true,
        )?;
        // The parser's line: `version V pref P n N | exe len L chip C | …`; chip 1 means no code.
        let mut line = format!(
            "version {} pref {} n {}",
            options.version.unwrap_or(0),
            options.preference.unwrap_or(-1),
            options.packages().count()
        );
        for (index, (_, package)) in options.packages().enumerate() {
            let chip = options.chips.as_ref().and_then(|chips| chips.get(index)).copied().unwrap_or(1);
            line.push_str(&format!(" | exe len {} chip {chip}", package.len()));
        }
        same("parser", Some(line.as_str()), case["driver_parser"].as_str())
    })
}

/// Packages that the stock driver reads differently: we read the maps, and flip every sign.
pub fn differing(folder: &Path) -> Vec<Listed> {
    listed(&folder.join("divergence"), "manifest.json", |bytes, case| {
        let package = PackageRef::parse(bytes, &Limits::hostile()).map_err(|findings| findings.to_string())?;
        let main = package.main().and_then(|index| package.executables().get(index)).ok_or("no executable")?;
        let layers = main.row().output_layers.clone().unwrap_or_default();
        let layer = layers.get(0).map_err(|error| error.to_string())?;
        let output = Output::new(&layer).map_err(|error| error.to_string())?;
        let device = splitmix(case["seed"].as_u64().ok_or("no seed")?, output.device_bytes());
        same("device", Some(device.len() as u64), case["device_bytes"].as_u64())?;
        let host = output.take(&device).map_err(|error| error.to_string())?;
        same("host", Some(sha256(&host).as_str()), case["by_the_maps_every_element_host_sha256"].as_str())
    })
}

/// Signatures checked against the public key next to them.
pub fn signatures(folder: &Path) -> Vec<Listed> {
    let folder = folder.join("synthetic");
    let key = std::fs::read_to_string(folder.join("signed_public_key.pem")).unwrap_or_default();
    listed(&folder, "signatures.json", move |bytes, case| {
        let key = edgepack_loader::PublicKey::from_pem(&key).map_err(|error| error.to_string())?;
        let package = PackageRef::parse(bytes, &Limits::hostile()).map_err(|findings| findings.to_string())?;
        let found = match key.check(&package) {
            Ok(true) => "valid",
            Ok(false) => "unsigned",
            Err(_) => "invalid",
        };
        same("signature", Some(found), case["signature"].as_str())?;
        let demanding = Registry::demanding(vec![key]).register(bytes).map(|_: Registration| ());
        same("registers with a key", demanding.is_ok(), found == "valid")
    })
}
