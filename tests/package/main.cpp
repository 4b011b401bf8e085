// BERT-Large on an A100, from the installed library; then a mistake with its place.
#include <ridgeline/ridgeline.h>
#include <iostream>

int main() {
  const ridgeline::Simulator simulator;
  const ridgeline::Answer answer = simulator.predict(
      {.text =
           "{hardware: nvidia-a100-sxm4-80gb, model: bert-large, training: {micro_batch: 4, sequence_length: 512}}"});
  std::cout << answer.step().time.value() << " s, " << answer.memory().device_used.value() << " bytes, "
            << answer.kernels().name.size() << " kernels, " << answer.timeline().start_s.size() << " launches\n";
  try {
    simulator.predict({.text = "{hardware: nvidia-a100-sxm4-80gb,\n model: bert-larg}"});
  } catch (const ridgeline::Mistake& mistake) {
    std::cout << mistake.line() << ":" << mistake.column() << " " << mistake.key() << "\n";
    return answer.step().time.value() > 0.01 && answer.step().time.value() < 1.0 && mistake.line() == 2 ? 0 : 1;
  }
  return 1;
}
