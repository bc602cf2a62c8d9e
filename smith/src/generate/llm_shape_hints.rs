//! Shapes that the operators of language models accept: attention, caches, gated recurrences, experts.
//!
//! Everything is made of the few numbers of a [`Sides`], so the arguments of one call fit each other.

use edgepack_format::scalar::ScalarType;

use arbitrary::Unstructured;

use crate::decisions::Decisions;

/// Elements of what goes into an expert, and of what is inside it.
const WIDTH: i32 = 16;

/// The numbers that the arguments of a call share.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    /// Tokens.
    pub tokens: i32,
    /// Places of a cache behind them; elements of a value of a recurrence.
    pub more: i32,
    /// Elements of a key.
    pub dim: i32,
    /// Heads of keys, experts, or the side of a tile.
    pub heads: i32,
    /// Sequences, and heads of queries for each head of keys.
    pub groups: i32,
}

impl Sides {
    /// Sizes for a tensor argument, if the operator is one of a language model's with shapes of its own.
    pub fn tensor(&self, operator: &str, arg: &str, u: &mut Unstructured<'_>) -> Option<Vec<i32>> {
        let Sides { tokens, more, dim, heads, groups } = *self;
        let (places, all) = (tokens + more, heads * groups);
        let is = |word: &str| operator.contains(word);
        Some(if is("::update_cache") {
            match arg {
                "value" => vec![groups, tokens, heads, dim],
                "cache" => vec![groups, places, heads, dim],
                "indices" => vec![groups, tokens],
                _ => vec![1],
            }
        } else if is("sdpa") {
            match arg {
                "query" | "out" => vec![groups, tokens, all, dim],
                "key" | "value" if is("with_kv_cache") => vec![groups, tokens, heads, dim],
                "attn_mask" => vec![tokens, places],
                "q_zero_points" | "q_scales" => vec![groups, tokens, all, 1],
                _ if arg.ends_with("_points") || arg.ends_with("_scales") => vec![groups, places, heads, 1],
                _ => vec![groups, places, heads, dim],
            }
        } else if is("delta_rule") {
            match arg {
                "query" => vec![groups, all, tokens, dim],
                "out" => vec![groups, all, tokens, more],
                "key" => vec![groups, heads, tokens, dim],
                "value" => vec![groups, heads, tokens, more],
                "decay" if u.one_in(2) => vec![groups, heads, tokens, dim],
                "decay" | "beta" => vec![groups, heads, tokens],
                _ => vec![groups, heads, dim, more],
            }
        } else if is("moe_ffn") {
            match arg {
                "gate_weight" => vec![heads, WIDTH],
                "expert_bias" => vec![if u.one_in(2) { heads } else { 0 }],
                "packed_w13" => vec![heads, self.packed(2 * WIDTH)],
                "packed_w2" => vec![heads, self.packed(WIDTH)],
                _ => vec![tokens, WIDTH],
            }
        } else if is("hadamard") {
            vec![tokens, u.pick(&[8, 1, 2, 28, 56, 64])]
        } else if is("tile_crop") {
            match arg {
                "input" => vec![dim, heads * tokens, heads * more],
                _ => vec![tokens * more, dim, heads, heads],
            }
        } else {
            return None;
        })
    }

    /// Bits of a packed weight.
    fn bits(&self) -> i32 {
        4 * self.groups
    }

    /// Bytes of a packed matrix with this many rows.
    fn packed(&self, rows: i32) -> i32 {
        64 + rows * (WIDTH * self.bits() / 8 + 8)
    }

    /// Returns the first numbers in the data of an argument, if they have a header.
    pub fn header(&self, operator: &str, arg: &str) -> Option<[i32; 8]> {
        (operator.contains("moe_ffn") && arg.starts_with("packed")).then(|| [6712, 1, self.bits(), 0, 0, 8, 16, 2])
    }

    /// Returns whether an operator needs an argument that its schema makes optional.
    pub fn needs(&self, operator: &str, arg: &str) -> bool {
        operator.contains("quantized_sdpa") && (arg.ends_with("_points") || arg.ends_with("_scales"))
    }

    /// The element type that an operator asks of an argument.
    pub fn element(&self, operator: &str, arg: &str) -> Option<ScalarType> {
        let bytes = operator.contains("quantized_sdpa");
        match arg {
            "attn_mask" => Some(ScalarType::FLOAT),
            "query" | "key" | "value" if bytes => Some(ScalarType::CHAR),
            _ if bytes && arg.ends_with("_points") => Some(ScalarType::CHAR),
            _ if bytes || operator.contains("delta_rule") => Some(ScalarType::FLOAT),
            _ if operator.contains("moe_ffn") && arg.starts_with("packed") => Some(ScalarType::BYTE),
            _ if operator.contains("moe_ffn") => Some(ScalarType::FLOAT),
            _ => None,
        }
    }

    /// Value for an integer argument; `None` for an argument that these operators do not have.
    pub fn int(&self, arg: &str, u: &mut Unstructured<'_>) -> Option<i64> {
        Some(match arg {
            "start_pos" => u.below(self.more as usize + 1) as i64,
            "seq_len" => self.tokens.into(),
            "tile_size" | "num_experts" => self.heads.into(),
            "num_activated_experts" => 1 + u.below(self.heads as usize) as i64,
            "hidden_dim" | "group_size" => WIDTH.into(),
            "weight_nbit" => self.bits().into(),
            _ => return None,
        })
    }
}
