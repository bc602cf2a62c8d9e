"""Trains small tokenizers with the reference libraries and records what those make of awkward texts.

    pip install tokenizers tiktoken sentencepiece transformers jinja2
    python make_truth.py

writes the folder `data` next to this file: a tokenizer per case, and the ids and texts that the library gives. Nothing is
fetched. The tests read the folder; this script runs when a case is added.
"""

import base64
import io
import json
import random
import struct
import tempfile
from pathlib import Path

import sentencepiece as spm
import tiktoken
from tiktoken_ext import openai_public
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

DATA = Path(__file__).parent / "data"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")

TEXTS = [
    "", " ", "  ", "   a", "a   ", " a  b   c ", "\n", "\n\n\n", " \n \n x", "a\r\nb\r\n\r\nc", "\t\ttabs\tand spaces \t ",
    "Hello, world!", "hello world hello", "The quick brown fox jumps over the lazy dog.",
    "I'm sure they'LL say WE'VE won't; it'S John's, y'all'd'VE", "naïve café déjà-vu Ünïcödé", "e\u0301a\u0308 n\u0303",
    "👩‍👩‍👧‍👦 family 👍🏽 🇩🇪", "עברית וערבית العربية", "漢字かな交じり文。한국어", "ภาษาไทยไม่มีช่องว่าง", "ﬁ ﬂ Å ① ㌔ ﷺ Ⅷ",
    "\u0000\u0001\u001b[0m\u007f", "\ufffd lone \ufffd\ufffd", "\u00a0nbsp\u2003em\u200bzero\ufeffbom", "a" * 300, "ab" * 120,
    " " * 130, "=" * 70 + "\n", "1234567890 3.14159 1,000,000 0x1F 12", "x = {'a': [1, 2, 3]}\n    return f(x)  # done\n",
    "def f(a, b):\n\treturn a**2 + b // 3\n\n", "https://example.org/a?b=c&d=%20#e", "snake_case camelCase PascalCase CONST_1",
    "▁ ▁▁ marks ▁like this", "Ġlooks Ċlike bytes", "<0x41> <0xE2>", "<|begin_of_text|>Hi<|eot_id|>", "a <|im_start|>user\nhi<|im_end|>\n",
    "[CLS] a [SEP] [UNK] [MASK]", "<s>a</s> <s> b </s><unk>", "<sep>mid<sep> foo_bar foo", "<|im_<|im_end|>end|>", "<mask>  x  <mask>",
    "ſpecial İstanbul ǅ", "ΑΒΓ αβγ ςσ", "\U0001d54f\U0010ffff\ue000", "line one\nline two\n\n\nline five   \n  end ", "a.b.c...d!!??",
    "Привет, мир! Это тест.", "नमस्ते दुनिया", "Don't stop", "'S 'T 'RE", "lower<|eot_id|>  spaced  <|eot_id|>tail", " leading", "trailing ",
    "日本語 日本 本語", "the then them theme", "0", "00000000000", "\u2028para\u2029", "\u3000wide\u3000", "🙂", "🙂🙂🙂", "é", "\u0301",
]

random.seed(7)
WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you "
         "were all her she there would their we him been has when who will no more if out so what up said about other into than its "
         "time only could new them man some these then two first may any like now my such make over our even most me state after also "
         "hello world quick brown fox jumps lazy dog return function user assistant system café naïve 123 2024 3.14").split()


def corpus():
    lines = [text for text in TEXTS if text.strip() and "<" not in text and "[" not in text and len(text) < 200]
    for _ in range(600):
        words = random.choices(WORDS, k=random.randint(3, 14))
        line = " ".join(words)
        lines.append(random.choice([line, line.capitalize() + ".", line + "!", "I'm " + line, "    " + line]))
    return lines


CORPUS = corpus()


def write(name, tokenizer_bytes, extension, record):
    (DATA / f"{name}.{extension}").write_bytes(tokenizer_bytes)
    record["file"] = f"{name}.{extension}"
    (DATA / f"{name}.truth.json").write_text(json.dumps(record, ensure_ascii=False, separators=(",", ":")), "utf-8")
    print(f"{name:24} {len(record['texts'])} texts, {len(record['decodes'])} decodings, {len(tokenizer_bytes)} bytes")


def random_ids(ids, count=40, seed=3):
    """Runs of ids that no text was encoded to, so that bytes come out of order."""
    source = random.Random(seed)
    return [[source.choice(ids) for _ in range(source.randint(1, 12))] for _ in range(count)]


def hugging_face(name, tokenizer, extra_texts=(), whole_bytes=True):
    data = tokenizer.to_str(pretty=False)
    tokenizer = Tokenizer.from_str(data)
    record = {"kind": "HuggingFace", "texts": [], "decodes": []}
    ids_of = {}
    for text in [*TEXTS, *extra_texts]:
        tokenizer.encode_special_tokens = False
        recognised = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = True
        as_text = tokenizer.encode(text, add_special_tokens=False).ids
        record["texts"].append([text, recognised, as_text])
        ids_of[text] = recognised
    runs = list(ids_of.values())
    if whole_bytes:
        runs += random_ids(range(tokenizer.get_vocab_size()))
    for ids in runs:
        record["decodes"].append([ids, tokenizer.decode(ids, skip_special_tokens=True),
                                  tokenizer.decode(ids, skip_special_tokens=False)])
    special = {token.content: id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    record["special"] = special
    write(name, data.encode(), "tokenizer.json", record)


def byte_level(name, pattern, special, added=(), normalizer=None, prefix=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=name.startswith("llama3")))
    if normalizer:
        tokenizer.normalizer = normalizer
    split = [pre_tokenizers.Split(Regex(pattern), behavior="isolated")] if pattern else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*split, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not pattern)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) if isinstance(token, str) else token for token in special])
    tokenizer.add_tokens(list(added))
    if name.startswith("llama3"):
        begin = tokenizer.token_to_id("<|begin_of_text|>")
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
            single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)])])
    hugging_face(name, tokenizer)
    return tokenizer


def all_hugging_face():
    llama = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    byte_level("llama3-bytes", LLAMA3, llama)
    byte_level("qwen-bytes", QWEN, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<think>", "</think>", "<tool_call>"],
               normalizers.NFC())
    byte_level("gpt2-bytes", None, ["<|endoftext|>", AddedToken("<mask>", lstrip=True, special=True, normalized=False),
                                    AddedToken("<|eot_id|>", rstrip=True, special=True, normalized=False)],
               [AddedToken("foo_bar", single_word=True), AddedToken("hello", single_word=False)], prefix=True)

    metaspace = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    metaspace.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    metaspace.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    alphabet = ["▁"] + list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'\"-_()[]{}<>/|=+*#:;&%")
    metaspace.train_from_iterator((line.replace(" ", "▁") for line in CORPUS if line.isascii()), trainers.BpeTrainer(
        vocab_size=600, show_progress=False, initial_alphabet=alphabet, max_token_length=12,
        special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]))
    document = json.loads(metaspace.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    metaspace = Tokenizer.from_str(json.dumps(document))
    metaspace.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])
    hugging_face("llama2-metaspace", metaspace, whole_bytes=False)

    mistral = Tokenizer.from_str(metaspace.to_str())
    mistral.normalizer = None
    mistral.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    mistral.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    hugging_face("metaspace-first", mistral, whole_bytes=False)

    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    unigram.train_from_iterator(CORPUS, trainers.UnigramTrainer(
        vocab_size=500, show_progress=False, unk_token="<unk>", special_tokens=["<s>", "</s>", "<unk>"]))
    hugging_face("unigram-metaspace", unigram)

    bert = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    bert.normalizer = normalizers.BertNormalizer(lowercase=True)
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    bert.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=600, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    bert.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    bert.add_special_tokens([AddedToken("<sep>", special=True, normalized=True, lstrip=True, rstrip=True)])
    bert.add_tokens([AddedToken("foo_bar", normalized=True)])
    hugging_face("bert-wordpiece", bert)

    suffix = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    suffix.normalizer = normalizers.Lowercase()
    suffix.pre_tokenizer = pre_tokenizers.Whitespace()
    suffix.decoder = decoders.BPEDecoder(suffix="</w>")
    suffix.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=500, show_progress=False, special_tokens=["<unk>", "<|endoftext|>"], end_of_word_suffix="</w>"))
    hugging_face("word-suffix", suffix)


def precompiled(model):
    """A unigram tokenizer.json with the compiled rules of a SentencePiece model, as conversions of such models have them."""
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString((DATA / model).read_bytes())
    tokenizer = Tokenizer(models.Unigram([(piece.piece, piece.score) for piece in proto.pieces], 0, True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Replace(Regex(" {2,}"), "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    hugging_face("unigram-rules", tokenizer)


def llama3_special():
    """Special tokens of Llama 3 and their places behind the ranks."""
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
             "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
             "<|python_tag|>"]
    names += [f"<|reserved_special_token_{2 + index}|>" for index in range(256 - len(names))]
    return {name: place for place, name in enumerate(names)}


def qwen_special():
    return {name: place for place, name in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])}


def openai_ranks(name, source, count):
    """An encoding as the library itself describes it, of `count` ranks, over ranks trained here."""
    openai_public.load_tiktoken_bpe = lambda *_, **__: {}
    openai_public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: {}
    encoding = openai_public.ENCODING_CONSTRUCTORS[name]()
    special = {token: id - count for token, id in encoding["special_tokens"].items()}
    ranks(f"{name.split('_')[0]}-ranks", encoding["pat_str"], source, special)


def ranks(name, pattern, source, special):
    """Ranks of a byte-level tokenizer, as tiktoken has them, with special tokens by their places behind them."""
    document = json.loads((DATA / f"{source}.tokenizer.json").read_text())
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte_of = {chr(byte): byte for byte in printable}
    byte_of |= {chr(256 + index): byte for index, byte in enumerate(byte for byte in range(256) if byte not in printable)}
    vocabulary = sorted(document["model"]["vocab"].items(), key=lambda entry: entry[1])
    vocabulary = {bytes(byte_of[c] for c in token): rank for token, rank in vocabulary}
    special = {name: len(vocabulary) + place for name, place in special.items()}
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=vocabulary, special_tokens=special)
    record = {"kind": "Tiktoken", "preset": name.split("-")[0], "texts": [], "decodes": [], "special": special}
    runs = []
    for text in TEXTS:
        recognised = encoding.encode(text, allowed_special="all")
        record["texts"].append([text, recognised, encoding.encode(text, disallowed_special=())])
        runs.append(recognised)
    for ids in runs + random_ids([*range(len(vocabulary)), *special.values()]):
        shown = encoding.decode(ids)
        hidden = encoding.decode([id for id in ids if id < len(vocabulary)])
        record["decodes"].append([ids, hidden, shown])
    data = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in vocabulary.items())
    write(name, data, "tiktoken", record)


def sentencepiece(name, **options):
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=2, hard_vocab_limit=False,
                                   num_threads=1, **options)
    model = model.getvalue()
    processor = spm.SentencePieceProcessor(model_proto=model)
    record = {"kind": "SentencePiece", "texts": [], "decodes": [], "special": {}}
    size = processor.get_piece_size()
    controls = [processor.id_to_piece(id) for id in range(size) if processor.is_control(id)]
    markers = [symbol for symbol in options.get("user_defined_symbols", []) if symbol[0] == "<"]
    runs = []
    for text in TEXTS:
        plain = processor.encode(text)
        runs.append(plain)
        # Control pieces are found by callers, not by the library; markers of users are to stay text.
        recognised = None if any(control in text for control in controls) else plain
        as_text = None if any(marker in text for marker in markers) else plain
        record["texts"].append([text, recognised, as_text])
    for ids in runs + random_ids(range(size)):
        decoded = processor.decode(ids)
        hidden = None if any(processor.id_to_piece(id) in markers for id in ids) else decoded
        shown = None if any(processor.is_control(id) for id in ids) else decoded
        record["decodes"].append([ids, hidden, shown])
    record["special"] = {piece: processor.piece_to_id(piece) for piece in controls + markers}
    write(name, model, "model", record)
    return processor


# Rules of one character to several, of several to one, to nothing and to spaces.
RULES = [("ﬁ", "fi"), ("ﷺ", "صلى الله عليه وسلم"), ("e\u0301", "é"), ("\u200b", ""), ("\u00a0", " "), ("\u3000", " "), ("\t", " "),
         ("\n", " "), ("\r", ""), ("Ａ", "A"), ("...", "…"), ("㌔", "キロ"), ("\u2003", "  ")]


def all_sentencepiece():
    rules = Path(tempfile.mkdtemp()) / "rules.tsv"
    code_points = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules.write_text("".join(f"{code_points(source)}\t{code_points(target)}\n" for source, target in RULES))
    common = dict(vocab_size=700, character_coverage=0.98)
    sentencepiece("unigram-bytes", model_type="unigram", byte_fallback=True, normalization_rule_name="nmt_nfkc", **common)
    sentencepiece("unigram-symbols", model_type="unigram", user_defined_symbols=["<sep>", "foo_bar", "\n"],
                  control_symbols=["<|im_start|>", "<|im_end|>"], normalization_rule_tsv=str(rules), **common)
    sentencepiece("unigram-suffix", model_type="unigram", treat_whitespace_as_suffix=True, normalization_rule_tsv=str(rules), **common)
    processor = sentencepiece("bpe-bytes", model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
                              remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True, **common)
    sentencepiece("bpe-no-prefix", model_type="bpe", byte_fallback=True, add_dummy_prefix=False, remove_extra_whitespaces=False,
                  normalization_rule_name="identity", user_defined_symbols=["<sep>", "<|eot_id|>", "\n\n"], **common)
    sentencepiece("bpe-trimmed", model_type="bpe", normalization_rule_tsv=str(rules), remove_extra_whitespaces=True, **common)
    return processor


def llama2c(processor):
    """The algorithm of llama2.c over the pieces of a SentencePiece model, in both layouts."""
    size = processor.get_piece_size()
    tokens = []
    for id in range(size):
        piece = processor.id_to_piece(id)
        piece = {1: "\n<s>\n", 2: "\n</s>\n"}.get(id, piece).replace("▁", " ")
        tokens.append((processor.get_score(id), piece.encode()))
    ids = {}
    for id, (_, token) in enumerate(tokens):
        ids.setdefault(token, id)

    def encode(text):
        if not text:
            return []
        found = [ids[b" "]]
        for c in text:
            known = ids.get(c.encode())
            found += [known] if known is not None else [byte + 3 for byte in c.encode()]
        while True:
            best = None
            for at in range(len(found) - 1):
                merged = ids.get(tokens[found[at]][1] + tokens[found[at + 1]][1])
                if merged is not None and (best is None or tokens[merged][0] > best[0]):
                    best = (tokens[merged][0], merged, at)
            if best is None:
                return found
            found[best[2]:best[2] + 2] = [best[1]]

    def decode(found):
        out, previous = b"", 1
        for id in found:
            piece = tokens[id][1]
            if previous == 1 and piece.startswith(b" "):
                piece = piece[1:]
            if len(piece) == 6 and piece.startswith(b"<0x"):
                piece = bytes([int(piece[3:5], 16)])
            out += piece
            previous = id
        return out.decode("utf-8", errors="replace")

    entries = b"".join(struct.pack("<fI", score, len(token)) + token for score, token in tokens)
    longest = max(len(token) for _, token in tokens)
    for name, head in [("llama2c", struct.pack("<I", longest)), ("llama2c-header", struct.pack("<4I", size, 1, 2, longest))]:
        record = {"kind": "Llama2c", "texts": [], "decodes": [], "special": {"<s>": 1, "</s>": 2}}
        for text in TEXTS:
            found = encode(text) if "\0" not in text else None
            special = "<s>" in text or "</s>" in text
            record["texts"].append([text, None if special else found, found])
            if found is not None:
                record["decodes"].append([found, decode(found), decode(found)])
        source = random.Random(5)
        for _ in range(40):
            found = [source.randrange(3, size) for _ in range(source.randint(1, 12))]
            record["decodes"].append([found, decode(found), decode(found)])
        write(name, head + entries, "bin", record)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    all_hugging_face()
    ranks("llama3-ranks", LLAMA3, "llama3-bytes", llama3_special())
    ranks("qwen-ranks", QWEN, "qwen-bytes", qwen_special())
    openai_ranks("gpt2", "gpt2-bytes", 50_256)
    openai_ranks("cl100k_base", "llama3-bytes", 100_256)
    openai_ranks("o200k_base", "llama3-bytes", 199_998)
    llama2c(all_sentencepiece())
    precompiled("unigram-symbols.model")
