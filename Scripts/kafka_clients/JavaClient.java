import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/** Apache's own client against a broker: JavaClient CLIENT-NAME HOST:PORT; one PASS or FAIL line a check. */
public class JavaClient {
    static String client;
    static String address;
    static int counter;
    static Admin admin;

    interface Body { void run() throws Exception; }

    static void check(String title, Body body) {
        long start = System.currentTimeMillis();
        String result = "PASS";
        String reason = "";
        try {
            body.run();
        } catch (Throwable error) {
            result = "FAIL";
            reason = " " + error.toString().replace('\n', ' ');
        }
        System.out.printf("%s %s: %s (%.1fs)%s%n", result, client, title, (System.currentTimeMillis() - start) / 1000.0, reason);
    }

    static void same(Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError("found " + found + ", expected " + expected);
    }

    static String name(String prefix) { return prefix + "-" + UUID.randomUUID().toString().substring(0, 8) + "-" + ++counter; }

    static Properties properties(Object... pairs) {
        Properties all = new Properties();
        all.put("bootstrap.servers", address);
        for (int index = 0; index < pairs.length; index += 2) all.put(pairs[index], pairs[index + 1].toString());
        return all;
    }

    static KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(properties(pairs), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Object... pairs) {
        Properties all = properties("auto.offset.reset", "earliest", "enable.auto.commit", "false");
        all.putAll(properties(pairs));
        return new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer());
    }

    static String topic(int partitions, Map<String, String> configs) throws Exception {
        String created = name("java");
        admin.createTopics(List.of(new NewTopic(created, partitions, (short) 1).configs(configs))).all().get();
        return created;
    }

    static String topic() throws Exception { return topic(1, Map.of()); }

    static List<ConsumerRecord<String, String>> poll(KafkaConsumer<String, String> from, int count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        long end = System.currentTimeMillis() + 15_000;
        while (records.size() < count && System.currentTimeMillis() < end) from.poll(Duration.ofMillis(200)).forEach(records::add);
        same(records.size(), count);
        return records;
    }

    static List<ConsumerRecord<String, String>> read(String of, int count, Object... pairs) {
        try (var consumer = consumer(pairs)) {
            consumer.assign(consumer.partitionsFor(of).stream().map(part -> new TopicPartition(of, part.partition())).toList());
            return poll(consumer, count);
        }
    }

    static List<String> values(List<ConsumerRecord<String, String>> records) { return records.stream().map(ConsumerRecord::value).toList(); }

    static <T extends Throwable> void fails(Class<T> kind, Callable<?> body) throws Exception {
        try {
            body.call();
        } catch (Throwable error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            if (kind.isInstance(cause)) return;
            throw new AssertionError("found " + cause + ", expected " + kind.getSimpleName());
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    public static void main(String[] arguments) throws Exception {
        client = arguments[0];
        address = arguments[1];
        System.out.println("kafka-clients " + AppInfoParser.getVersion());
        admin = Admin.create(properties());
        messages();
        groups();
        transactions();
        administration();
        admin.close();
    }

    static void messages() {
        check("produce and consume keys, values, headers, timestamps", () -> {
            String used = topic();
            try (var producer = producer()) {
                for (int index = 0; index < 100; index++) {
                    var record = new ProducerRecord<>(used, 0, 1_600_000_000_000L + index, "k" + index, "v" + index);
                    record.headers().add("h", "1".getBytes(StandardCharsets.UTF_8));
                    same(producer.send(record).get().offset(), (long) index);
                }
            }
            var records = read(used, 100);
            for (int index = 0; index < 100; index++) {
                var record = records.get(index);
                same(List.of(record.key(), record.value(), record.timestamp()), List.of("k" + index, "v" + index, 1_600_000_000_000L + index));
                same(new String(record.headers().lastHeader("h").value(), StandardCharsets.UTF_8), "1");
            }
        });
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            check("codec " + codec, () -> {
                String used = topic();
                try (var producer = producer("compression.type", codec, "linger.ms", 20)) {
                    for (int index = 0; index < 5000; index++) producer.send(new ProducerRecord<>(used, "value " + index));
                }
                var found = values(read(used, 5000));
                for (int index = 0; index < 5000; index++) same(found.get(index), "value " + index);
            });
        }
        check("acks 0, 1 and all", () -> {
            for (String acks : List.of("0", "1", "all")) {
                String used = topic();
                try (var producer = producer("acks", acks, "enable.idempotence", acks.equals("all"))) {
                    for (int index = 0; index < 50; index++) producer.send(new ProducerRecord<>(used, "v" + index));
                }
                read(used, 50);
            }
        });
        check("a topic is made by producing", () -> {
            String used = name("java-auto");
            try (var producer = producer()) { same(producer.send(new ProducerRecord<>(used, "x")).get().offset(), 0L); }
            same(values(read(used, 1)), List.of("x"));
        });
        check("offsets by time, beginning and end", () -> {
            String used = topic();
            try (var producer = producer()) {
                for (long index = 1; index <= 10; index++) producer.send(new ProducerRecord<>(used, 0, 1000 * index, "k", "v")).get();
            }
            var part = new TopicPartition(used, 0);
            try (var consumer = consumer()) {
                same(consumer.offsetsForTimes(Map.of(part, 4500L)).get(part).offset(), 4L);
                same(consumer.beginningOffsets(Set.of(part)).get(part), 0L);
                same(consumer.endOffsets(Set.of(part)).get(part), 10L);
            }
        });
    }

    static void groups() {
        check("commit and resume", () -> {
            String used = topic();
            String group = name("g");
            try (var producer = producer()) {
                for (int index = 0; index < 10; index++) producer.send(new ProducerRecord<>(used, "v" + index));
            }
            try (var consumer = consumer("group.id", group, "max.poll.records", 4)) {
                consumer.subscribe(List.of(used));
                same(poll(consumer, 4).size(), 4);
                consumer.commitSync();
            }
            try (var consumer = consumer("group.id", group)) {
                consumer.subscribe(List.of(used));
                same(values(poll(consumer, 6)).get(0), "v4");
            }
        });
        for (String assignor : List.of("RangeAssignor", "CooperativeStickyAssignor")) {
            check("two members share four partitions, " + assignor, () -> {
                String used = topic(4, Map.of());
                Object[] options = {
                    "group.id", name("g"), "session.timeout.ms", 6000, "heartbeat.interval.ms", 500,
                    "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor};
                try (var first = consumer(options)) {
                    first.subscribe(List.of(used));
                    try (var second = consumer(options)) {
                        second.subscribe(List.of(used));
                        long end = System.currentTimeMillis() + 25_000;
                        while (first.assignment().size() != 2 || second.assignment().size() != 2) {
                            if (System.currentTimeMillis() > end) throw new AssertionError(first.assignment() + " " + second.assignment());
                            first.poll(Duration.ofMillis(100));
                            second.poll(Duration.ofMillis(100));
                        }
                    }
                    long end = System.currentTimeMillis() + 25_000;
                    while (first.assignment().size() != 4) {
                        if (System.currentTimeMillis() > end) throw new AssertionError(first.assignment().toString());
                        first.poll(Duration.ofMillis(100));
                    }
                }
            });
        }
    }

    static void transactions() {
        check("committed records are seen and aborted ones are not", () -> {
            String used = topic(2, Map.of());
            try (var producer = producer("transactional.id", name("t"))) {
                producer.initTransactions();
                for (int round = 0; round < 6; round++) {
                    producer.beginTransaction();
                    for (int index = 0; index < 20; index++) producer.send(new ProducerRecord<>(used, index % 2, "k", round + "." + index));
                    if (round % 2 == 0) producer.commitTransaction(); else { producer.flush(); producer.abortTransaction(); }
                }
            }
            var rounds = new TreeSet<String>();
            for (String value : values(read(used, 60, "isolation.level", "read_committed"))) rounds.add(value.substring(0, 1));
            same(rounds, new TreeSet<>(List.of("0", "2", "4")));
            read(used, 120, "isolation.level", "read_uncommitted");
        });
        check("an open transaction holds readers back, and its end lets them on", () -> {
            String used = topic();
            var part = new TopicPartition(used, 0);
            try (var producer = producer("transactional.id", name("t")); var consumer = consumer("isolation.level", "read_committed")) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(used, "a")).get();
                same(admin.listOffsets(Map.of(part, OffsetSpec.latest())).partitionResult(part).get().offset(), 1L);
                same(consumer.endOffsets(Set.of(part)).get(part), 0L);
                consumer.assign(Set.of(part));
                same(consumer.poll(Duration.ofMillis(500)).count(), 0);
                producer.commitTransaction();
                same(values(poll(consumer, 1)), List.of("a"));
            }
        });
        check("a new instance fences the old one", () -> {
            String used = topic();
            String id = name("t");
            try (var old = producer("transactional.id", id); var fresh = producer("transactional.id", id)) {
                old.initTransactions();
                old.beginTransaction();
                old.send(new ProducerRecord<>(used, "zombie")).get();
                fresh.initTransactions();
                try {
                    old.commitTransaction();
                    throw new AssertionError("the old instance committed");
                } catch (ProducerFencedException | InvalidProducerEpochException expected) {
                    fresh.beginTransaction();
                }
                fresh.send(new ProducerRecord<>(used, "kept")).get();
                fresh.commitTransaction();
            }
            same(values(read(used, 1, "isolation.level", "read_committed")), List.of("kept"));
        });
        check("read, change and write exactly once", () -> {
            String from = topic();
            String to = topic();
            String group = name("g");
            try (var producer = producer()) {
                for (int index = 0; index < 30; index++) producer.send(new ProducerRecord<>(from, "v" + index));
            }
            String id = name("t");
            for (int attempt = 0; attempt < 3; attempt++) {
                try (var consumer = consumer("group.id", group, "isolation.level", "read_committed", "max.poll.records", 10);
                        var producer = producer("transactional.id", id)) {
                    producer.initTransactions();
                    consumer.subscribe(List.of(from));
                    var records = poll(consumer, 10);
                    producer.beginTransaction();
                    for (var record : records) producer.send(new ProducerRecord<>(to, record.value() + "!"));
                    producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition(from, 0), new OffsetAndMetadata(records.get(9).offset() + 1)), consumer.groupMetadata());
                    if (attempt == 1) producer.abortTransaction(); else producer.commitTransaction();
                }
            }
            var found = values(read(to, 20, "isolation.level", "read_committed"));
            for (int index = 0; index < 20; index++) same(found.get(index), "v" + index + "!");
        });
        check("list and describe transactions and producers", () -> {
            String used = topic();
            String id = name("t");
            var part = new TopicPartition(used, 0);
            try (var producer = producer("transactional.id", id)) {
                producer.initTransactions();
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(used, "a")).get();
                if (admin.listTransactions().all().get().stream().noneMatch(found -> found.transactionalId().equals(id))) throw new AssertionError("not listed");
                var described = admin.describeTransactions(List.of(id)).description(id).get();
                same(described.state().toString() + described.topicPartitions(), "Ongoing[" + part + "]");
                var active = admin.describeProducers(List.of(part)).partitionResult(part).get().activeProducers();
                same(active.get(0).currentTransactionStartOffset().getAsLong(), 0L);
                producer.abortTransaction();
            }
        });
    }

    static void administration() {
        check("create, list, describe, grow and delete topics", () -> {
            String used = topic(2, Map.of());
            same(admin.describeTopics(List.of(used)).allTopicNames().get().get(used).partitions().size(), 2);
            admin.createPartitions(Map.of(used, NewPartitions.increaseTo(4))).all().get();
            same(admin.describeTopics(List.of(used)).allTopicNames().get().get(used).partitions().size(), 4);
            fails(TopicExistsException.class, () -> admin.createTopics(List.of(new NewTopic(used, 1, (short) 1))).all().get());
            same(admin.listPartitionReassignments().reassignments().get().size(), 0);
            admin.deleteTopics(List.of(used)).all().get();
            if (admin.listTopics().names().get().contains(used)) throw new AssertionError("still there");
        });
        check("settings of a topic", () -> {
            String used = topic(1, Map.of("cleanup.policy", "compact", "retention.ms", "1000"));
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, used);
            var configs = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            same(configs.get("cleanup.policy").value() + configs.get("retention.ms").value() + configs.get("segment.ms").isDefault(), "compact1000true");
            admin.incrementalAlterConfigs(Map.of(resource, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE),
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "delete"), AlterConfigOp.OpType.APPEND)))).all().get();
            configs = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            same(configs.get("cleanup.policy").value() + configs.get("retention.ms").value(), "compact,delete-1");
            fails(Exception.class, () -> topic(1, Map.of("retention.ms", "soon")));
        });
        check("delete records", () -> {
            String used = topic();
            try (var producer = producer()) {
                for (int index = 0; index < 10; index++) producer.send(new ProducerRecord<>(used, "v" + index));
            }
            var part = new TopicPartition(used, 0);
            same(admin.deleteRecords(Map.of(part, RecordsToDelete.beforeOffset(6))).lowWatermarks().get(part).get().lowWatermark(), 6L);
            same(values(read(used, 4)).get(0), "v6");
        });
        check("list, describe and delete groups", () -> {
            String used = topic();
            String group = name("g");
            try (var producer = producer()) { producer.send(new ProducerRecord<>(used, "x")).get(); }
            try (var consumer = consumer("group.id", group)) {
                consumer.subscribe(List.of(used));
                poll(consumer, 1);
                consumer.commitSync();
            }
            same(admin.describeConsumerGroups(List.of(group)).all().get().get(group).members().size(), 0);
            same(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(new TopicPartition(used, 0)).offset(), 1L);
            admin.deleteConsumerGroups(List.of(group)).all().get();
        });
    }
}
