//! A program as text: what is not in a method.

use std::io::Write;

use edgepack_format::pte::{Program, SubsegmentOffsets};

use super::spelling::{line, numbers, optional, quoted};
use super::{MAGIC, VERSION, print_method};
use crate::edit::{Content, Error, Layout, Package};

/// File next to a text, for larger contents.
pub struct SideFile<'f> {
    /// Its name, which the text states: a plain file name.
    pub name: &'f str,
    /// Destination of its bytes. Nothing is written if there are none.
    pub out: &'f mut dyn Write,
}

/// Ceiling of the bytes that stay in the text; longer contents go to the file next to the text.
const INLINE: u64 = 64;

/// A program as text with all bytes in it.
pub fn print(package: &Package<'_>) -> Result<String, Error> {
    print_with(package, None)
}

/// A program as text. Contents of more than 64 bytes go to the other file, if there is one.
pub fn print_with(package: &Package<'_>, side: Option<SideFile<'_>>) -> Result<String, Error> {
    let mut text = Vec::new();
    print_to(package, side, &mut text)?;
    String::from_utf8(text).map_err(|_| Error::refused("the text", "it is not UTF-8"))
}

/// Writes a program as text; bytes of any number stream through.
pub fn print_to(package: &Package<'_>, side: Option<SideFile<'_>>, to: &mut dyn Write) -> Result<(), Error> {
    let kind = Error::Kind { found: package.root.kind(), wanted: "a program" };
    let program = package.program().ok_or(kind)?;
    let mut printer = Printer { out: String::new(), to, side, written: 0 };
    let out = &mut printer.out;
    line(out, 0, &format!("{MAGIC} {VERSION}"));
    if program.version != 0 {
        line(out, 0, &format!("version {}", program.version));
    }
    let Layout { header, segment_alignment, data_alignment } = package.layout;
    let header = header.map_or_else(|| "none".to_owned(), |length| length.to_string());
    line(out, 0, &format!("layout header {header} segments {segment_alignment} data {data_alignment}"));
    if let Some(side) = &printer.side {
        line(out, 0, &format!("file {}", quoted(side.name)));
    }
    if let Some(plans) = &program.execution_plan {
        line(&mut printer.out, 0, "methods {");
        for plan in plans.iter() {
            print_method::print(&plan?, &mut printer.out)?;
            printer.flush()?;
        }
        line(&mut printer.out, 0, "}");
    }
    printer.data(program, package)?;
    printer.flush()
}

struct Printer<'f, 't> {
    /// Text that was not written yet.
    out: String,
    to: &'t mut dyn Write,
    side: Option<SideFile<'f>>,
    /// Bytes in the file next to the text.
    written: u64,
}

impl Printer<'_, '_> {
    fn flush(&mut self) -> Result<(), Error> {
        self.to.write_all(self.out.as_bytes())?;
        self.out.clear();
        Ok(())
    }

    fn data(&mut self, program: &Program<'_>, package: &Package<'_>) -> Result<(), Error> {
        if let Some(list) = &program.constant_segment {
            line(&mut self.out, 0, &format!("constants {}", subsegments(list)));
        }
        if let Some(lists) = &program.mutable_data_segments {
            line(&mut self.out, 0, "initial_values {");
            for list in lists.iter() {
                line(&mut self.out, 1, &format!("values {}", subsegments(&list?)));
            }
            line(&mut self.out, 0, "}");
        }
        if let Some(entries) = &program.named_data {
            line(&mut self.out, 0, "named_data {");
            for entry in entries.iter() {
                let entry = entry?;
                let key = optional(entry.key.as_deref());
                line(&mut self.out, 1, &format!("entry {key} segment {}", entry.segment_index));
            }
            line(&mut self.out, 0, "}");
        }
        if let Some(rows) = &program.segments {
            if rows.len() != package.segments.len() {
                let message = format!("{} rows for {} contents", rows.len(), package.segments.len());
                return Err(Error::refused("segments", message));
            }
            line(&mut self.out, 0, "segments {");
            for (index, (row, content)) in rows.iter().zip(&package.segments).enumerate() {
                let row = row?;
                self.out.push_str(&format!("  segment at {} size {} ", row.offset, row.size));
                self.bytes(content)?;
                self.out.push_str(&format!(" // {index}\n"));
            }
            line(&mut self.out, 0, "}");
        }
        let mut blobs = |name: &str, list: Vec<Option<Content>>| -> Result<(), Error> {
            line(&mut self.out, 0, &format!("{name} {{"));
            for content in list {
                self.out.push_str("  data ");
                match content {
                    Some(content) => self.bytes(&content)?,
                    None => self.out.push_str("absent"),
                }
                self.out.push('\n');
            }
            line(&mut self.out, 0, "}");
            Ok(())
        };
        if let Some(rows) = &program.constant_buffer {
            let list = rows.iter().map(|row| Ok(row?.storage.map(|blob| Content::from(blob.as_slice()))));
            blobs("inline_constants", list.collect::<Result<_, Error>>()?)?;
        }
        if let Some(rows) = &program.backend_delegate_data {
            let list = rows.iter().map(|row| Ok(row?.data.map(|blob| Content::from(blob.as_slice()))));
            blobs("inline_delegates", list.collect::<Result<_, Error>>()?)?;
        }
        Ok(())
    }

    /// Bytes in the text, or where they are in the file next to it.
    fn bytes(&mut self, content: &Content) -> Result<(), Error> {
        match &mut self.side {
            Some(side) if content.len() > INLINE => {
                content.write_to(side.out).map_err(Error::io(side.name))?;
                let at = self.written;
                self.written = self.written.saturating_add(content.len());
                self.out.push_str(&format!("file {at} {}", content.len()));
            }
            _ => {
                self.out.push_str("base64 \"");
                self.flush()?;
                content.write_base64(self.to)?;
                self.out.push('"');
            }
        }
        Ok(())
    }
}

fn subsegments(list: &SubsegmentOffsets<'_>) -> String {
    let offsets = list.offsets.as_ref().map(|offsets| format!(" {}", numbers(offsets))).unwrap_or_default();
    format!("segment {}{offsets}", list.segment_index)
}
