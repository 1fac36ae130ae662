//! What a ZIP archive says it unpacks to, read off its central directory: a file of a few
//! kilobytes can unpack to gigabytes, and the reader would follow it.

use std::io::{self, Read, Seek, SeekFrom};

const END: &[u8; 4] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const LONGEST_COMMENT: u64 = 65_535;
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
/// An XLSX file has a few dozen parts.
const MAX_ENTRIES: usize = 4_096;

/// The sum over all parts; `None` for an archive that is damaged, or larger than the old format
/// can say.
pub(super) fn unpacked(archive: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let length = archive.seek(SeekFrom::End(0))?;
    let tail_bytes = length.min(LONGEST_COMMENT + END_BYTES as u64);
    archive.seek(SeekFrom::Start(length - tail_bytes))?;
    let mut tail = Vec::new();
    archive.read_to_end(&mut tail)?;
    let Some(end) = tail.windows(END_BYTES).rposition(|bytes| bytes.starts_with(END)) else {
        return Ok(None);
    };
    let end = &tail[end..end + END_BYTES];
    let (entries, bytes, start) = (two(end, 10), four(end, 12), four(end, 16));
    if entries as usize > MAX_ENTRIES || u64::from(start) + u64::from(bytes) > length {
        return Ok(None);
    }
    archive.seek(SeekFrom::Start(start.into()))?;
    let mut directory = Vec::new();
    archive.take(bytes.into()).read_to_end(&mut directory)?;
    Ok(sum(&directory, entries))
}

fn sum(mut directory: &[u8], entries: u16) -> Option<u64> {
    let mut unpacked = 0;
    for _ in 0..entries {
        if directory.len() < ENTRY_BYTES || !directory.starts_with(ENTRY) {
            return None;
        }
        let size = four(directory, 24);
        if size == u32::MAX {
            return None;
        }
        unpacked += u64::from(size);
        let rest: usize = [28, 30, 32].iter().map(|at| usize::from(two(directory, *at))).sum();
        directory = directory.get(ENTRY_BYTES + rest..)?;
    }
    Some(unpacked)
}

fn two(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn four(bytes: &[u8], at: usize) -> u32 {
    u32::from(two(bytes, at)) | u32::from(two(bytes, at + 2)) << 16
}
