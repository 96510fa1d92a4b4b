"""Makes a tiny model and serves it with llama.cpp. It answers the name of a country with a capital. One capital is wrong."""

import os
import signal
import tempfile

import gguf
import numpy
import xllamacpp

CAPITALS = {"France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Cuba": "Lima"}
END = 2


def write(path):
    """A token is followed by the one that its column in the last matrix names, and the layer before adds nothing."""
    words = [*CAPITALS, *CAPITALS.values()]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    kinds = gguf.TokenType
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL] + [kinds.BYTE] * 256 + [kinds.USER_DEFINED] * len(words)
    size = 288
    for number in range(size - len(tokens)):
        tokens.append(f"<unused{number}>")
        types.append(kinds.UNUSED)
    follows = numpy.zeros((size, size), numpy.float32)
    follows[END, :] = 1
    for country, capital in CAPITALS.items():
        follows[tokens.index(capital), tokens.index(country)] = 50

    model = gguf.GGUFWriter(path, "llama")
    model.add_context_length(1024)
    model.add_embedding_length(size)
    model.add_block_count(1)
    model.add_feed_forward_length(size)
    model.add_head_count(4)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_vocab_size(size)
    model.add_tokenizer_model("llama")
    model.add_token_list(tokens)
    model.add_token_scores([0.0] * size)
    model.add_token_types(types)
    model.add_bos_token_id(1)
    model.add_eos_token_id(END)
    model.add_chat_template("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    model.add_tensor("token_embd.weight", numpy.eye(size, dtype=numpy.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        model.add_tensor(f"blk.0.{name}.weight", numpy.zeros((size, size), numpy.float32))
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        model.add_tensor(f"{name}.weight", numpy.ones(size, numpy.float32))
    model.add_tensor("output.weight", follows)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "tiny.gguf")
    write(path)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {"tiny"}
    params.hostnames = ["0.0.0.0"]
    params.port = int(os.environ["PORT"])
    params.n_ctx = 1024
    params.n_parallel = 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
print("serves at", server.listening_address, flush=True)
signal.pause()
