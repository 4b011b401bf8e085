# GPT-2 small on one GPU
batch_size = 2
block_size = 64
gradient_accumulation_steps = 5 * 2
n_layer = 12
n_head = 12
n_embd = 768
dtype = 'bfloat16'
compile = False
