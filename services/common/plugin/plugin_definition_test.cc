#include "services/common/plugin/plugin_definition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string MessageOf(std::string_view yaml) {
  const auto definition = ParsePluginDefinition(yaml, "p.yaml");
  if (definition.ok()) return "no error";
  EXPECT_EQ(ReasonOf(definition.status()), "INVALID_PLUGIN");
  EXPECT_NE(NextStepOf(definition.status()), "");
  return std::string(definition.status().message());
}

// Returns a definition whose sonobuoy-config contains `more` in addition to the required keys.
std::string With(std::string_view more) {
  return "sonobuoy-config:\n  driver: Job\n  plugin-name: p\n" + std::string(more) +
         "spec:\n  command: [run]\n";
}

TEST(PluginDefinitionTest, CompleteDefinitionIsParsed) {
  const std::string yaml = R"(
sonobuoy-config:
  driver: DAEMONSET
  plugin-name: disk.check_2
  result-format: e2e
  result-type: old
  result-files: [a.xml, b.xml]
  order: 7
  skip-cleanup: true
  description: looks at disks
  source-url: https://example.org/p.yaml
spec:
  name: plugin
  image: example.org/disk:$SONOBUOY_K8S_VERSION
  command: [/bin/check]
  args: [--level, 3]
  env:
  - name: A
    value: "1"
  - name: EMPTY
  - name: FROM
    valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
  resources: {limits: {cpu: 1}}
  somethingNew: yes
podSpec: {hostNetwork: true}
extra-volumes: [{name: v}]
config-map:
  conf.txt: |
    line
)";
  const auto d = ParsePluginDefinition(yaml, "p.yaml");
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->name, "disk.check_2");
  EXPECT_FALSE(d->once);
  EXPECT_EQ(d->kind, PluginKind::kContainer);
  EXPECT_EQ(d->result_format, "junit");
  EXPECT_THAT(d->result_files, ElementsAre("a.xml", "b.xml"));
  EXPECT_EQ(d->order, 7);
  EXPECT_TRUE(d->skip_cleanup);
  EXPECT_EQ(d->description, "looks at disks");
  EXPECT_EQ(d->source_url, "https://example.org/p.yaml");
  EXPECT_EQ(d->image, "example.org/disk:$SONOBUOY_K8S_VERSION");
  EXPECT_THAT(d->command, ElementsAre("/bin/check"));
  EXPECT_THAT(d->args, ElementsAre("--level", "3"));
  EXPECT_THAT(d->env, ElementsAre(Pair("A", "1"), Pair("EMPTY", "")));
  EXPECT_THAT(d->config_map, ElementsAre(Pair("conf.txt", "line\n")));
  EXPECT_EQ(d->yaml, yaml);
}

TEST(PluginDefinitionTest, KindFollowsFromSpec) {
  const auto kind = [](std::string_view rest) {
    const auto d = ParsePluginDefinition(
        "sonobuoy-config: {driver: job, plugin-name: p}\n" + std::string(rest), "p.yaml");
    EXPECT_TRUE(d.ok()) << d.status();
    EXPECT_TRUE(d.ok() && d->once);
    return d.ok() ? d->kind : PluginKind::kModule;
  };
  EXPECT_EQ(kind("spec: {image: i}"), PluginKind::kContainer);
  EXPECT_EQ(kind("podSpec: {containers: [{image: i}]}"), PluginKind::kContainer);
  EXPECT_EQ(kind("spec: {command: [c]}"), PluginKind::kExec);
  EXPECT_EQ(kind("spec: {name: n, args: [c]}"), PluginKind::kExec);
  EXPECT_EQ(kind("spec: {name: n}"), PluginKind::kModule);
}

TEST(PluginDefinitionTest, UnknownFormatIsRaw) {
  const auto d = ParsePluginDefinition(With("  result-format: fancy\n"), "p.yaml");
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_EQ(d->result_format, "raw");
}

TEST(PluginDefinitionTest, MissingFieldsAreReported) {
  EXPECT_EQ(MessageOf("{}"),
            "p.yaml:1: sonobuoy-config: missing; it must contain driver and plugin-name\n"
            "p.yaml:1: spec: missing; it must name the program or image");
  EXPECT_EQ(MessageOf("spec: {command: [x]}\nsonobuoy-config:\n  order: 1\n"),
            "p.yaml:3: sonobuoy-config.driver: missing; must be Job or DaemonSet\n"
            "p.yaml:3: sonobuoy-config.plugin-name: missing");
  // A field without a value.
  EXPECT_EQ(MessageOf("spec: {command: [x]}\nsonobuoy-config:\n  driver:\n  plugin-name:\n"),
            "p.yaml:3: sonobuoy-config.driver: missing; must be Job or DaemonSet\n"
            "p.yaml:3: sonobuoy-config.plugin-name: missing");
  EXPECT_EQ(MessageOf("---\n---\n"), "p.yaml: it is empty");
}

TEST(PluginDefinitionTest, WrongValueIsReportedWithLineAndField) {
  EXPECT_EQ(MessageOf(With("  order: first\n")),
            "p.yaml:4: sonobuoy-config.order: must be a whole number");
  EXPECT_EQ(MessageOf(With("  order: [1]\n")), "p.yaml:4: sonobuoy-config.order: must be a string");
  EXPECT_EQ(MessageOf(With("  skip-cleanup: perhaps\n")),
            "p.yaml:4: sonobuoy-config.skip-cleanup: must be true or false");
  EXPECT_EQ(MessageOf(With("  result-files: a.xml\n")),
            "p.yaml:4: sonobuoy-config.result-files: must be a list of strings");
  EXPECT_EQ(MessageOf("sonobuoy-config: {driver: Cron, plugin-name: p}\nspec: {image: i}"),
            "p.yaml:1: sonobuoy-config.driver: must be Job or DaemonSet");
  EXPECT_EQ(MessageOf("sonobuoy-config: 5\nspec: []"),
            "p.yaml:1: sonobuoy-config: must be a map\n"
            "p.yaml:2: spec: must be a map (a Kubernetes container)");
  EXPECT_EQ(MessageOf("- a"), "p.yaml:1: the plugin definition must be a map");
}

TEST(PluginDefinitionTest, UnknownFieldIsReportedWithTheNearestName) {
  EXPECT_EQ(MessageOf(With("  plugin_name: q\n")),
            "p.yaml:4: sonobuoy-config.plugin_name: unknown field; did you mean plugin-name?");
  EXPECT_EQ(MessageOf(With("") + "podspec: {}\n"),
            "p.yaml:6: podspec: unknown field; did you mean podSpec?");
}

TEST(PluginDefinitionTest, UnknownFieldOfACommandIsReported) {
  const std::string head = "sonobuoy-config: {driver: Job, plugin-name: p}\nspec:\n";
  EXPECT_EQ(MessageOf(head + "  comand: [/bin/true]\n"),
            "p.yaml:3: spec.comand: unknown field; did you mean command?");
  EXPECT_EQ(MessageOf(head + "  command: [a]\n  agrs: [b]\n"),
            "p.yaml:4: spec.agrs: unknown field; did you mean args?");
  EXPECT_EQ(MessageOf(head + "  command: [a]\n  env: [{name: A, vale: b}]\n"),
            "p.yaml:4: spec.env.vale: unknown field; did you mean value?");
  EXPECT_EQ(MessageOf(head + "  command: [a]\n  resources: {}\n  volumeMounts: []\n"), "no error");
}

TEST(PluginDefinitionTest, InvalidNamesAreRefused) {
  for (const char* name : {".hidden", "a/b", "\"a b\"", "\"\"", "sonobuoy"}) {
    EXPECT_THAT(MessageOf("sonobuoy-config: {driver: Job, plugin-name: " + std::string(name) +
                          "}\nspec: {image: i}"),
                HasSubstr("p.yaml:1: sonobuoy-config.plugin-name: "))
        << name;
  }
  EXPECT_TRUE(ValidatePluginName(std::string(253, 'x')).ok());
  EXPECT_FALSE(ValidatePluginName(std::string(254, 'x')).ok());
}

TEST(PluginDefinitionTest, ValueFromIsRefusedWithoutImage) {
  EXPECT_EQ(MessageOf(With("") + "  env:\n  - name: A\n    valueFrom: {}\n"),
            "p.yaml:8: spec.env.valueFrom: requires an image; use value instead");
  EXPECT_EQ(MessageOf(With("") + "  env: [{value: b}]\n"),
            "p.yaml:6: spec.env: each entry must be a map with a name");
  EXPECT_EQ(MessageOf(With("") + "  env: [{name: A, value: [1]}]\n"),
            "p.yaml:6: spec.env.value: must be a string");
}

TEST(PluginDefinitionTest, TextThatIsNotADefinitionIsRefused) {
  EXPECT_THAT(MessageOf("a: [b"), HasSubstr("invalid YAML"));
  EXPECT_THAT(MessageOf(std::string(100'000, '[')), HasSubstr("p.yaml:"));
  EXPECT_THAT(MessageOf(std::string("\0\x01\xff", 3)), HasSubstr("p.yaml:"));
  EXPECT_THAT(MessageOf(std::string(kMaxPluginDefinition + 1, '#')),
              HasSubstr("more than 1048576"));
  EXPECT_THAT(MessageOf(With("") + "---\na: b\n"), HasSubstr("p.yaml:7: a second document"));
}

}  // namespace
}  // namespace muster
