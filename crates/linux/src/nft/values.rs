//! Values of attributes, and attributes that hold them, as nf_tables has them all over.

/// A name, ended by a zero.
pub(super) fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// A number, in network order.
pub(super) const fn number(value: u32) -> [u8; 4] {
    value.to_be_bytes()
}

// include/uapi/linux/netfilter/nf_tables.h
pub(super) const NFTA_LIST_ELEM: u16 = 1;
pub(super) const NFTA_DATA_VALUE: u16 = 1;
