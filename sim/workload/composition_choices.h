// Words of a composition's keys, and what each means.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "sim/workload/composition.h"

namespace ridgeline::composition_choices {

template <typename Enum, std::size_t N>
using Choices = std::array<std::pair<std::string_view, Enum>, N>;

inline constexpr Choices<InputKind, 3> kInputs{
    {{"tokens", InputKind::tokens}, {"image", InputKind::image}, {"audio", InputKind::audio}}};
inline constexpr Choices<PositionKind, 7> kPositions{{{"none", PositionKind::none},
                                                      {"learned", PositionKind::learned},
                                                      {"sinusoidal", PositionKind::sinusoidal},
                                                      {"rotary", PositionKind::rotary},
                                                      {"alibi", PositionKind::alibi},
                                                      {"relative", PositionKind::relative},
                                                      {"disentangled", PositionKind::disentangled}}};
inline constexpr Choices<bool, 2> kCodes{{{"transformers", false}, {"plain", true}}};
inline constexpr Choices<RotaryStyle, 3> kRotaryStyles{
    {{"halves", RotaryStyle::halves}, {"pairs", RotaryStyle::pairs}, {"complex", RotaryStyle::complex}}};
inline constexpr Choices<NormKind, 8> kNorms{{{"layer", NormKind::layer},
                                              {"rms", NormKind::rms},
                                              {"rms-fused", NormKind::rms_fused},
                                              {"rms-plus-one", NormKind::rms_plus_one},
                                              {"rms-cast-last", NormKind::rms_cast_last},
                                              {"rms-t5", NormKind::rms_t5},
                                              {"layer-written-out", NormKind::layer_written_out},
                                              {"layer-plus-one", NormKind::layer_plus_one}}};
inline constexpr Choices<NormPlace, 4> kNormPlaces{
    {{"pre", NormPlace::pre}, {"post", NormPlace::post}, {"both", NormPlace::both}, {"after", NormPlace::after}}};
inline constexpr Choices<ResidualKind, 3> kResiduals{{{"serial", ResidualKind::serial},
                                                      {"parallel", ResidualKind::parallel},
                                                      {"parallel-two-norms", ResidualKind::parallel_two_norms}}};
inline constexpr Choices<ProjectionKind, 5> kProjections{{{"separate", ProjectionKind::separate},
                                                          {"fused", ProjectionKind::fused},
                                                          {"fused-by-head", ProjectionKind::fused_by_head},
                                                          {"fused-slices", ProjectionKind::fused_slices},
                                                          {"fused-groups", ProjectionKind::fused_groups}}};
inline constexpr Choices<GroupingKind, 3> kGroupings{
    {{"told", GroupingKind::told}, {"broadcast", GroupingKind::broadcast}, {"copied", GroupingKind::copied}}};
inline constexpr Choices<QueryKeyNorm, 4> kQueryKeyNorms{{{"none", QueryKeyNorm::none},
                                                          {"head", QueryKeyNorm::head},
                                                          {"width", QueryKeyNorm::width},
                                                          {"each-head", QueryKeyNorm::each_head}}};
inline constexpr Choices<ClassLoss, 3> kClassLosses{{{"cross-entropy", ClassLoss::cross_entropy},
                                                     {"squares", ClassLoss::squares},
                                                     {"each-label", ClassLoss::each_label}}};
inline constexpr Choices<ImageNorm, 3> kImageNorms{
    {{"none", ImageNorm::none}, {"rms", ImageNorm::rms}, {"layer-joined", ImageNorm::layer_joined}}};
inline constexpr Choices<ScorePlace, 3> kScorePlaces{
    {{"attention", ScorePlace::attention}, {"queries", ScorePlace::queries}, {"nowhere", ScorePlace::nowhere}}};
inline constexpr Choices<AttentionCode, 4> kAttentionCodes{{{"fused", AttentionCode::fused},
                                                            {"written-out", AttentionCode::written_out},
                                                            {"written-out-fp32", AttentionCode::written_out_fp32},
                                                            {"written-out-flat", AttentionCode::written_out_flat}}};
inline constexpr Choices<RouterKind, 3> kRouters{
    {{"softmax", RouterKind::softmax}, {"sigmoid", RouterKind::sigmoid}, {"sparse-mixer", RouterKind::sparse_mixer}}};
inline constexpr Choices<FeedForwardKind, 3> kFeedForwardKinds{{{"plain", FeedForwardKind::plain},
                                                                {"gated", FeedForwardKind::gated},
                                                                {"gated-fused", FeedForwardKind::gated_fused}}};
inline constexpr Choices<ComposedActivation, 11> kActivationsOfBlocks{
    {{"gelu", ComposedActivation::gelu},
     {"gelu-tanh", ComposedActivation::gelu_tanh},
     {"gelu-spelled-out", ComposedActivation::gelu_spelled_out},
     {"gelu-written-out", ComposedActivation::gelu_written_out},
     {"relu", ComposedActivation::relu},
     {"relu-squared", ComposedActivation::relu_squared},
     {"silu", ComposedActivation::silu},
     {"quick-gelu", ComposedActivation::quick_gelu},
     {"tanh", ComposedActivation::tanh},
     {"clamped-silu", ComposedActivation::clamped_silu},
     {"bloom-gelu", ComposedActivation::bloom_gelu}}};
inline constexpr Choices<HeadKind, 9> kHeadKinds{{{"none", HeadKind::none},
                                                  {"pretraining", HeadKind::pretraining},
                                                  {"language-model", HeadKind::language_model},
                                                  {"masked-lm", HeadKind::masked_lm},
                                                  {"sequence-classification", HeadKind::sequence_classification},
                                                  {"token-classification", HeadKind::token_classification},
                                                  {"question-answering", HeadKind::question_answering},
                                                  {"image-classification", HeadKind::image_classification},
                                                  {"contrastive", HeadKind::contrastive}}};
inline constexpr Choices<UnreadTop, 4> kUnreadTops{
    {{"none", UnreadTop::none}, {"norm", UnreadTop::norm}, {"dense", UnreadTop::dense}, {"probe", UnreadTop::probe}}};
inline constexpr Choices<PoolerKind, 9> kPoolers{{{"none", PoolerKind::none},
                                                  {"pretrained-tanh", PoolerKind::pretrained_tanh},
                                                  {"first-token", PoolerKind::first_token},
                                                  {"dense-tanh", PoolerKind::dense_tanh},
                                                  {"dense-activation", PoolerKind::dense_activation},
                                                  {"class-and-mean", PoolerKind::class_and_mean},
                                                  {"mean", PoolerKind::mean},
                                                  {"mean-norm", PoolerKind::mean_norm},
                                                  {"mean-patches", PoolerKind::mean_patches}}};

}  // namespace ridgeline::composition_choices
