//! Identifiers.

use rand::Rng;

/// A random UUID (version 4) in its 36 characters: tasks, events and proofs.
pub fn new_uuid() -> String {
    let bits = rand::rng().random::<u128>();
    let bits = (bits & !(0xf_u128 << 76) & !(0x3_u128 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Whether a text can be an answer's uuid, and so a cursor: 32 lower-case hexadecimal digits.
pub fn is_answer_uuid(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_uuid_has_its_version_and_never_comes_twice() {
        let (a, b) = (new_uuid(), new_uuid());
        assert_ne!(a, b);
        for uuid in [a, b] {
            assert_eq!(uuid.len(), 36);
            assert_eq!(&uuid[14..15], "4");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        }
    }

    #[test]
    fn a_cursor_is_32_lower_case_hexadecimal_digits() {
        assert!(is_answer_uuid("0123456789abcdef0123456789abcdef"));
        for bad in ["", "0123456789ABCDEF0123456789abcdef", "0123456789abcdef0123456789abcde", "g"]
        {
            assert!(!is_answer_uuid(bad), "{bad}");
        }
    }
}
