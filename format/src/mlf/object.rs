//! Compiled objects by their header: the kind of file, and the machine that it is for. Nothing else of them is read.

use core::fmt;

/// Kind of a compiled object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ObjectCode {
    /// An ELF object that can be linked.
    Elf(ElfMachine),
    /// An ELF file that is not an object, such as a program or a library; with its type.
    ElfOther(u16),
    /// A Mach-O file of macOS.
    MachO,
    /// Bitcode of LLVM, which only LLVM can compile.
    Bitcode,
    /// Anything else.
    Unknown,
}

/// Machine that an ELF object is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElfMachine {
    /// Number of the machine.
    pub machine: u16,
    /// Width of an address: 32 or 64 bits.
    pub bits: u8,
    /// True if the first byte of a number is its highest.
    pub big_endian: bool,
}

/// Numbers of machines in ELF headers and their names.
const MACHINES: [(u16, &str); 19] = [
    (3, "x86"),
    (8, "MIPS"),
    (20, "PowerPC"),
    (21, "PowerPC"),
    (22, "S/390"),
    (40, "ARM"),
    (43, "SPARC"),
    (50, "IA-64"),
    (62, "x86-64"),
    (83, "AVR"),
    (93, "ARC"),
    (94, "Xtensa"),
    (105, "MSP430"),
    (164, "Hexagon"),
    (183, "AArch64"),
    (195, "ARC"),
    (243, "RISC-V"),
    (252, "C-SKY"),
    (258, "LoongArch"),
];

impl ObjectCode {
    /// Reads the header of a file.
    pub fn of(bytes: &[u8]) -> ObjectCode {
        match bytes {
            [0x7f, b'E', b'L', b'F', class @ (1 | 2), order @ (1 | 2), ..] => elf(bytes, *class, *order),
            [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xfe, 0xed, 0xfa, 0xcf | 0xce, ..] => ObjectCode::MachO,
            [b'B', b'C', 0xc0, 0xde, ..] => ObjectCode::Bitcode,
            _ => ObjectCode::Unknown,
        }
    }

    /// Returns the kind of object that can be linked into this process.
    pub fn of_this_process() -> ObjectCode {
        if cfg!(target_vendor = "apple") {
            return ObjectCode::MachO;
        }
        let machine = match () {
            () if cfg!(target_arch = "x86_64") => 62,
            () if cfg!(target_arch = "aarch64") => 183,
            () if cfg!(target_arch = "x86") => 3,
            () if cfg!(target_arch = "arm") => 40,
            () if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) => 243,
            () if cfg!(target_arch = "s390x") => 22,
            () if cfg!(target_arch = "powerpc64") => 21,
            () if cfg!(target_arch = "powerpc") => 20,
            () if cfg!(target_arch = "loongarch64") => 258,
            () => 0,
        };
        let bits = if cfg!(target_pointer_width = "64") { 64 } else { 32 };
        ObjectCode::Elf(ElfMachine { machine, bits, big_endian: cfg!(target_endian = "big") })
    }
}

/// Type of an ELF file that can be linked.
const RELOCATABLE: u16 = 1;

fn elf(bytes: &[u8], class: u8, order: u8) -> ObjectCode {
    let number = |at: usize| {
        let pair: [u8; 2] = bytes.get(at..)?.first_chunk().copied()?;
        Some(if order == 2 { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
    };
    match (number(16), number(18)) {
        (Some(RELOCATABLE), Some(machine)) => {
            let bits = if class == 2 { 64 } else { 32 };
            ObjectCode::Elf(ElfMachine { machine, bits, big_endian: order == 2 })
        }
        (Some(other), Some(_)) => ObjectCode::ElfOther(other),
        _ => ObjectCode::Unknown,
    }
}

impl fmt::Display for ObjectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectCode::Elf(machine) => write!(f, "an ELF object for {machine}"),
            ObjectCode::ElfOther(kind) => write!(f, "an ELF file of type {kind}, not an object"),
            ObjectCode::MachO => f.write_str("a Mach-O object"),
            ObjectCode::Bitcode => f.write_str("bitcode of LLVM"),
            ObjectCode::Unknown => f.write_str("not an object of a known kind"),
        }
    }
}

impl fmt::Display for ElfMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match MACHINES.iter().find(|(number, _)| *number == self.machine) {
            Some((_, name)) => f.write_str(name)?,
            None => write!(f, "machine {}", self.machine)?,
        }
        let order = if self.big_endian { "big-endian" } else { "little-endian" };
        write!(f, " ({} bits, {order})", self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Start of an ELF file.
    fn header(class: u8, order: u8, kind: u16, machine: u16) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, order];
        bytes.resize(16, 0);
        for number in [kind, machine] {
            bytes.extend(if order == 2 { number.to_be_bytes() } else { number.to_le_bytes() });
        }
        bytes
    }

    #[test]
    fn machines_are_told_by_the_header() {
        for (bytes, want) in [
            (header(2, 1, 1, 62), "an ELF object for x86-64 (64 bits, little-endian)"),
            (header(1, 1, 1, 40), "an ELF object for ARM (32 bits, little-endian)"),
            (header(1, 2, 1, 8), "an ELF object for MIPS (32 bits, big-endian)"),
            (header(1, 1, 1, 9999), "an ELF object for machine 9999 (32 bits, little-endian)"),
            (header(2, 1, 3, 62), "an ELF file of type 3, not an object"),
            (b"\xcf\xfa\xed\xfe rest".to_vec(), "a Mach-O object"),
            (b"BC\xc0\xde".to_vec(), "bitcode of LLVM"),
            (b"\x7fELF".to_vec(), "not an object of a known kind"),
            (header(2, 1, 1, 62)[..19].to_vec(), "not an object of a known kind"),
            (header(3, 1, 1, 62), "not an object of a known kind"),
            (vec![], "not an object of a known kind"),
        ] {
            assert_eq!(ObjectCode::of(&bytes).to_string(), want);
        }
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn this_process_links_its_own_machine() {
        assert_eq!(ObjectCode::of(&header(2, 1, 1, 62)), ObjectCode::of_this_process());
        assert_ne!(ObjectCode::of(&header(2, 1, 1, 183)), ObjectCode::of_this_process());
    }
}
