"""Makes a language model that is small enough for this tree and knows a few animals well: text from a grammar in this
file, a byte-level BPE tokenizer trained on it, a Llama of three layers trained on it, and a program of that model.

usage: make.py [FOLDER]       (this folder if not given; some minutes of one thread)

Writes tokenizer.json, tokenizer_config.json, story.pte and sample.txt, a text to score.
Needs torch, torchao, executorch and tokenizers."""
import json, os, random, sys, tempfile, time
import torch
import torch.nn.functional as F
from torch.nn.utils import parametrize
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN, END, TURN, TURN_END = SPECIALS = ["<|begin|>", "<|end|>", "<|im_start|>", "<|im_end|>"]
CONTEXT, VOCABULARY, STEPS, BATCH = 256, 384, 1500, 16
SHAPE = dict(dim=64, n_layers=3, n_heads=4, n_kv_heads=2, vocab_size=VOCABULARY, hidden_dim=160, norm_eps=1e-5, rope_theta=10000.0)

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

# Animal: name, colour, home, food, and who its friend is.
ANIMALS = {
    "fox": ("Ruby", "red", "under the old oak", "berries", "owl"),
    "owl": ("Otis", "brown", "in the tall tower", "nuts", "fox"),
    "bear": ("Bruno", "black", "in a warm cave", "honey", "duck"),
    "duck": ("Dora", "white", "by the quiet lake", "seeds", "bear"),
    "mouse": ("Milo", "grey", "behind the mill", "cheese", "frog"),
    "frog": ("Flora", "green", "near the deep well", "flies", "mouse"),
}
# Most stories are about the first animal, so that there is a likeliest one.
WEIGHTS = [6, 1, 1, 1, 1, 1]
# Weather, and what friends do in it.
DAYS = {
    "sunny": ("walked to the hill", "looked at the clouds", "happy"),
    "rainy": ("sat by the fire", "told each other stories", "warm"),
    "snowy": ("played in the snow", "built a little house", "tired"),
}
SYSTEM = "You know the animals of the forest."


def story(r, animal=None):
    animal = animal or r.choices(list(ANIMALS), WEIGHTS)[0]
    name, colour, home, food, friend = ANIMALS[animal]
    other = ANIMALS[friend][0]
    day = r.choices(list(DAYS), [6, 2, 1])[0]
    went, did, felt = DAYS[day]
    start = r.choices(["Once upon a time there was", "Long ago there lived"], [4, 1])[0]
    return (
        f"{start} a little {colour} {animal} named {name}. {name} lived {home} and liked to eat {food}. "
        f"One {day} day {name} met {other} the {friend}. \"Will you come with me?\" asked {name}. \"Yes!\" said {other}. "
        f"They {went} and {did}. {name} gave {other} some {food}. In the evening they were {felt} and went home. The end."
    )


def turn(r):
    """A question and its answer."""
    animal = r.choice(list(ANIMALS))
    name, colour, home, food, friend = ANIMALS[animal]
    subject = r.choice([f"the {animal}", name])
    return r.choice([
        (f"What does {subject} eat?", f"The {animal} likes to eat {food}."),
        (f"Where does {subject} live?", f"The {animal} lives {home}."),
        (f"What colour is {subject}?", f"The {animal} is {colour}."),
        (f"Who is the friend of {subject}?", f"The friend of the {animal} is {ANIMALS[friend][0]} the {friend}."),
        (f"What is the name of the {animal}?", f"The name of the {animal} is {name}."),
        (f"Who is {name}?", f"{name} is a little {colour} {animal}."),
        r.choice([("Hello!", "Hello! Ask me about an animal."), ("Thank you!", "You are welcome.")]),
    ])


def conversation(r):
    said = [("system", SYSTEM)] if r.random() < 0.3 else []
    for _ in range(r.randint(1, 5)):
        question, answer = turn(r)
        said += [("user", question), ("assistant", answer)]
    return said


def text(r):
    """A training text as pairs of special tokens and plain text."""
    if r.random() < 0.4:
        return f"{BEGIN}{story(r)}{END}"
    return BEGIN + "".join(f"{TURN}{role}\n{content}{TURN_END}\n" for role, content in conversation(r))


def tokenizer(folder):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    r = random.Random(1)
    plain = [story(r) for _ in range(200)] + [content for _ in range(200) for _, content in conversation(r)]
    plain += ["system", "user", "assistant"] * 100
    made.train_from_iterator(plain, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIALS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    made.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, made.token_to_id(BEGIN))])
    assert made.get_vocab_size() == VOCABULARY
    made.save(f"{folder}/tokenizer.json", pretty=False)
    with open(f"{folder}/tokenizer_config.json", "w") as out:
        json.dump({
            "bos_token": BEGIN, "eos_token": TURN_END, "additional_special_tokens": [TURN, TURN_END],
            "model_max_length": CONTEXT, "chat_template": TEMPLATE,
        }, out, indent=2)
        out.write("\n")
    return made


class Rounded(torch.nn.Module):
    """A weight as four bits will hold it, with the gradient of the weight itself."""

    def forward(self, weight):
        groups = weight.reshape(-1, 32)
        scale = groups.abs().amax(1, keepdim=True).clamp_min(1e-8) / 7.5
        there = ((groups / scale).round().clamp(-8, 7) * scale).reshape(weight.shape)
        return weight + (there - weight).detach()


def train(made):
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    torch.manual_seed(0)
    r = random.Random(0)
    model = construct_transformer(ModelArgs(max_seq_len=CONTEXT, max_context_len=CONTEXT, use_kv_cache=False, generate_full_logits=True, **SHAPE))
    parameters = dict(model.named_parameters())
    for parameter in parameters.values():
        with torch.no_grad():
            parameter.copy_(torch.ones_like(parameter) if parameter.dim() == 1 else torch.randn_like(parameter) / parameter.shape[-1] ** 0.5)
    optimizer = torch.optim.AdamW(parameters.values(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.01)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=STEPS, pct_start=0.1, final_div_factor=100)
    quantised, start = False, time.time()
    for step in range(STEPS):
        if not quantised and step >= STEPS // 2:  # what comes after learns to live with four bits
            quantised = True
            for module in model.modules():
                if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                    parametrize.register_parametrization(module, "weight", Rounded())
        rows = [made.encode(text(r), add_special_tokens=False).ids[:CONTEXT] for _ in range(BATCH)]
        longest = max(map(len, rows))
        have = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        want = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
        logits = model(have)
        logits = logits[0] if isinstance(logits, tuple) else logits
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), want[:, 1:].reshape(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)
        optimizer.step()
        plan.step()
        if step % 50 == 0 or step + 1 == STEPS:
            print(f"step {step}: {longest} tokens, loss {loss.item():.4f}, {time.time() - start:.0f} s", flush=True)
    return {name: parameter.detach() for name, parameter in parameters.items()}


def export(made, weights, folder):
    from executorch.examples.models.llama.export_llama_lib import export_llama
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  the operators of attention and cache
    from executorch.extension.llm.export.config.llm_config import DtypeOverride, LlmConfig, ModelType
    import executorch.kernels.quantized  # noqa: F401  the operators of rows of four bits

    with tempfile.TemporaryDirectory() as work, torch.no_grad():
        json.dump(SHAPE, open(f"{work}/params.json", "w"))
        torch.save(weights, f"{work}/weights.pth")
        c = LlmConfig()
        c.base.model_class = ModelType("llama3")
        c.base.params, c.base.checkpoint = f"{work}/params.json", f"{work}/weights.pth"
        ends = [made.token_to_id(END), made.token_to_id(TURN_END)]
        c.base.metadata = json.dumps({"get_bos_id": made.token_to_id(BEGIN), "get_eos_ids": ends})
        c.model.dtype_override = DtypeOverride.fp32
        c.model.use_kv_cache = c.model.use_sdpa_with_kv_cache = c.model.enable_dynamic_shape = True
        c.quantization.qmode, c.quantization.group_size, c.quantization.embedding_quantize = "8da4w", 32, "4,32"
        c.export.max_seq_length = c.export.max_context_length = CONTEXT
        c.export.output_dir, c.export.output_name = work, f"{folder}/story.pte"
        c.backend.xnnpack.enabled = c.backend.xnnpack.extended_ops = True
        export_llama(c)


def main():
    folder = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else HERE
    made = tokenizer(folder)
    r = random.Random(2)
    with open(f"{folder}/sample.txt", "w") as out:
        out.write(story(r, "bear") + "\n")
    export(made, train(made), folder)
    for name in ["story.pte", "tokenizer.json", "tokenizer_config.json", "sample.txt"]:
        print(name, os.path.getsize(f"{folder}/{name}"))


if __name__ == "__main__":
    main()
