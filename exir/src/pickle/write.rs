//! Pickles of tensors by name, as `torch.save` writes them.

use edgepack_format::scalar::ScalarType;

/// A tensor as a pickle describes it: a view of a storage that the file around it keeps.
pub(crate) struct Described<'t> {
    /// Name of the tensor.
    pub(crate) name: &'t str,
    /// True if the tensor is a parameter, and requires a gradient.
    pub(crate) parameter: Option<bool>,
    /// Element type.
    pub(crate) scalar_type: ScalarType,
    /// The name of its storage in the file.
    pub(crate) key: String,
    /// Number of elements in the storage, or of bytes if there is no storage of that type.
    pub(crate) count: u64,
    /// The first element.
    pub(crate) offset: usize,
    /// Sizes.
    pub(crate) sizes: &'t [usize],
    /// Strides.
    pub(crate) strides: &'t [usize],
}

/// A pickle of a dictionary of tensors. `types` gives the names of a type's storage and of the type itself.
pub(crate) fn dictionary<'t>(
    tensors: impl IntoIterator<Item = Described<'t>>,
    types: impl Fn(ScalarType) -> Option<(&'static str, &'static str)>,
) -> Result<Vec<u8>, ScalarType> {
    let mut out = Writer { bytes: b"\x80\x02}(".to_vec() };
    for tensor in tensors {
        let (storage, own) = types(tensor.scalar_type).ok_or(tensor.scalar_type)?;
        out.text(tensor.name);
        if tensor.parameter.is_some() {
            out.name("torch._utils", "_rebuild_parameter");
            out.bytes.push(b'(');
        }
        out.name("torch._utils", if storage.is_empty() { "_rebuild_tensor_v3" } else { "_rebuild_tensor_v2" });
        out.bytes.extend(b"((");
        out.text("storage");
        match storage {
            "" => out.name("torch.storage", "UntypedStorage"),
            storage => out.name("torch", storage),
        }
        out.text(&tensor.key);
        out.text("cpu");
        out.number(tensor.count);
        out.bytes.extend(b"tQ");
        out.number(tensor.offset as u64);
        out.numbers(tensor.sizes);
        out.numbers(tensor.strides);
        out.bytes.push(0x89);
        out.nothing_to_hook();
        if storage.is_empty() {
            out.name("torch", own);
        }
        out.bytes.extend(b"tR");
        if let Some(wants_gradient) = tensor.parameter {
            out.bytes.push(if wants_gradient { 0x88 } else { 0x89 });
            out.nothing_to_hook();
            out.bytes.extend(b"tR");
        }
    }
    out.bytes.extend(b"u.");
    Ok(out.bytes)
}

struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn text(&mut self, text: &str) {
        self.bytes.push(b'X');
        self.bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }

    fn name(&mut self, module: &str, name: &str) {
        self.bytes.push(b'c');
        for part in [module, name] {
            self.bytes.extend(part.as_bytes());
            self.bytes.push(b'\n');
        }
    }

    fn number(&mut self, number: u64) {
        match i32::try_from(number) {
            Ok(small) => {
                self.bytes.push(b'J');
                self.bytes.extend(small.to_le_bytes());
            }
            // Sizes in memory have 63 bits at most.
            Err(_) => {
                self.bytes.extend([0x8a, 8]);
                self.bytes.extend(number.to_le_bytes());
            }
        }
    }

    fn numbers(&mut self, numbers: &[usize]) {
        self.bytes.push(b'(');
        numbers.iter().for_each(|number| self.number(*number as u64));
        self.bytes.push(b't');
    }

    fn nothing_to_hook(&mut self) {
        self.name("collections", "OrderedDict");
        self.bytes.extend(b")R");
    }
}
