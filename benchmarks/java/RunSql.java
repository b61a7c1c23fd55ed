import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;

/**
 * Runs one script per input line (base64), in this process, and prints the seconds it took and, if
 * it has a SELECT, the values of its last row. A script with a SELECT runs as a batch, unless it
 * says otherwise.
 */
public class RunSql {
    private static final String STREAMING = "SET 'execution.runtime-mode' = 'streaming'";
    private static final Pattern SET = Pattern.compile("SET '(.*)' = '(.*)'");

    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String script = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            try {
                System.out.println("took " + run(script));
            } catch (Exception failure) {
                System.out.println("failed " + String.valueOf(root(failure)).replace('\n', ' '));
            }
            System.out.flush();
        }
    }

    private static String run(String script) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("parallelism.default", System.getProperty("parallelism", "2"));
        settings.setString("table.exec.source.idle-timeout", "1 s");
        EnvironmentSettings.Builder environment =
                EnvironmentSettings.newInstance().withConfiguration(settings);
        String[] statements = script.split(";\\s*\n");
        boolean asBatch =
                Arrays.stream(statements).anyMatch(each -> each.trim().startsWith("SELECT"))
                        && !script.contains(STREAMING);
        TableEnvironment tables =
                TableEnvironment.create(
                        (asBatch ? environment.inBatchMode() : environment.inStreamingMode()).build());
        StringBuilder found = new StringBuilder();
        long start = System.nanoTime();
        for (String statement : statements) {
            if (statement.isBlank()) {
                continue;
            }
            Matcher setting = SET.matcher(statement.trim());
            if (setting.matches()) {
                tables.getConfig().set(setting.group(1), setting.group(2));
                continue;
            }
            var result = tables.executeSql(statement.trim());
            if (statement.trim().startsWith("INSERT")) {
                result.await();
            } else if (statement.trim().startsWith("SELECT")) {
                try (var rows = result.collect()) {
                    while (rows.hasNext()) {
                        Row row = rows.next();
                        found.setLength(0);
                        for (int at = 0; at < row.getArity(); at++) {
                            found.append(' ').append(row.getField(at));
                        }
                    }
                }
            }
        }
        return (System.nanoTime() - start) / 1e9 + found.toString();
    }

    private static Throwable root(Throwable failure) {
        while (failure.getCause() != null) {
            failure = failure.getCause();
        }
        return failure;
    }
}
