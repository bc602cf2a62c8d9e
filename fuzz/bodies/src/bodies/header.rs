//! The first bytes of files: what kind they are, and extended headers.

use edgepack_format::header::{DataHeader, ProgramHeader, identifier};
use edgepack_format::{detect, header::HEADER_OFFSET};

/// See [`BODIES`](super::BODIES).
pub fn header(data: &[u8]) {
    assert!(!detect(data).name().is_empty());
    let _ = identifier(data);
    if let Ok(header) = ProgramHeader::read(data) {
        let mut again = data[..HEADER_OFFSET].to_vec();
        again.extend(header.to_bytes());
        let read = ProgramHeader::read(&again).expect("a written header reads");
        let size = header.segment_data_size.unwrap_or(0);
        let same = ProgramHeader { length: ProgramHeader::LEN, segment_data_size: Some(size), ..header };
        assert_eq!(ProgramHeader { length: ProgramHeader::LEN, ..read }, same);
    }
    if let Ok(header) = DataHeader::read(data) {
        let _ = header.region_end();
        let mut again = data[..HEADER_OFFSET].to_vec();
        again.extend(header.to_bytes());
        let read = DataHeader::read(&again).expect("a written header reads");
        assert_eq!(DataHeader { length: header.length, ..read }, header);
    }
}
