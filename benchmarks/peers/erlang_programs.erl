%% The benchmark programs for Erlang/OTP. `tools/bench peers` compiles and runs them:
%%
%%   erl +S 2:2 -noshell -run erlang_programs main pairs/100/w:2
%%
%% runs one program once without counting it, then once more, and prints one line of JSON with its name and figures.
%% Names are those of //benchmarks/limit; the number of schedulers is the command line's. A message is one integer.
%% Fan-in gives its consumer an off-heap message queue, which is several times faster there.
-module(erlang_programs).
-export([main/1, serve/1, consume/2, echo/0]).

main([Name]) ->
    Figures = figures(string:split(Name, "/", all)),
    io:format("{\"name\": \"~s\", ~s}~n", [Name, Figures]),
    erlang:halt(0).

figures(["ping_pong", _]) -> rate(fun() -> pairs(1) end);
figures(["pairs", Pairs, _]) -> rate(fun() -> pairs(list_to_integer(Pairs)) end);
figures(["ring", Size, _]) -> rate(fun() -> ring(list_to_integer(Size)) end);
figures(["fan_in", Producers, _]) -> rate(fun() -> fan_in(list_to_integer(Producers)) end);
figures(["spawn", _]) -> rate(fun spawn_many/0);
figures(["skynet", _]) -> rate(fun skynet/0);
figures(["ask", _]) -> rate(fun ask/0);
figures(["latency_idle", _]) -> latency(0);
figures(["latency_busy", Pairs, _]) -> latency(list_to_integer(Pairs));
figures(["remote_one_way", _]) ->
    Node = start_server(),
    rate(fun() -> remote_one_way(Node) end);
figures(["remote_round_trip", _]) -> percentiles(remote_round_trips(start_server()));
figures([Program | _]) ->
    io:format(standard_error, "erlang_programs: there is no program \"~s\"~n", [Program]),
    erlang:halt(2).

%% Each program returns what it counted and how many seconds that took. It runs in a process of its own, whose heap goes
%% with it.
rate(Program) ->
    in_own_process(Program),
    {Items, Seconds} = in_own_process(Program),
    io_lib:format("\"items_per_second\": ~.3f", [Items / Seconds]).

in_own_process(Program) ->
    Self = self(),
    spawn_link(fun() -> Self ! {result, Program()} end),
    receive {result, Result} -> Result end.

settle() -> timer:sleep(20).

now_ns() -> erlang:monotonic_time(nanosecond).

seconds_since(Begin) -> (now_ns() - Begin) / 1.0e9.

await(0, _) -> ok;
await(Count, Message) -> receive Message -> await(Count - 1, Message) end.

pairs(Pairs) ->
    Rounds = 1000000 div Pairs div 2,
    Self = self(),
    Pings = [spawn_link(fun() -> ping_start(spawn_link(fun pong/0), Rounds, Self) end) || _ <- lists:seq(1, Pairs)],
    settle(),
    Begin = now_ns(),
    [Ping ! 1 || Ping <- Pings],
    await(Pairs, done),
    {Rounds * Pairs * 2, seconds_since(Begin)}.

ping_start(Pong, Rounds, Parent) ->
    Pong ! self(),
    receive Value -> Pong ! Value end,
    ping(Pong, Rounds, Parent).

ping(_, 0, Parent) -> Parent ! done;
ping(Pong, Left, Parent) ->
    receive Value when is_integer(Value) -> Pong ! Value, ping(Pong, Left - 1, Parent) end.

pong() -> receive Ping -> pong(Ping) end.
pong(Ping) -> receive Value when is_integer(Value) -> Ping ! Value, pong(Ping) end.

ring(Size) ->
    Hops = 1000000,
    Self = self(),
    Nodes = [spawn_link(fun() -> ring_start(Self) end) || _ <- lists:seq(1, Size)],
    lists:foreach(fun({Node, Next}) -> Node ! Next end, lists:zip(Nodes, tl(Nodes) ++ [hd(Nodes)])),
    settle(),
    Begin = now_ns(),
    hd(Nodes) ! Hops,
    await(1, done),
    {Hops, seconds_since(Begin)}.

ring_start(Parent) -> receive Next when is_pid(Next) -> ring_node(Next, Parent) end.
ring_node(Next, Parent) ->
    receive
        0 -> Parent ! done;
        Value -> Next ! Value - 1
    end,
    ring_node(Next, Parent).

fan_in(Producers) ->
    Share = 1000000 div Producers,
    Self = self(),
    Consumer = spawn_opt(fun() -> consume(Share * Producers, Self) end, [link, {message_queue_data, off_heap}]),
    Pids = [spawn_link(fun() -> receive start -> produce(Share, Consumer) end end) || _ <- lists:seq(1, Producers)],
    settle(),
    Begin = now_ns(),
    [Pid ! start || Pid <- Pids],
    await(1, done),
    {Share * Producers, seconds_since(Begin)}.

consume(0, Parent) -> Parent ! done;
consume(Left, Parent) -> receive _ -> consume(Left - 1, Parent) end.

produce(0, _) -> ok;
produce(Left, Consumer) -> Consumer ! Left, produce(Left - 1, Consumer).

%% Every process counts itself where the others do.
spawn_many() ->
    Count = 200000,
    Self = self(),
    Left = atomics:new(1, []),
    atomics:put(Left, 1, Count),
    Spawner = spawn_link(fun() -> receive start -> spawn_many(Count, Left, Self) end end),
    settle(),
    Begin = now_ns(),
    Spawner ! start,
    await(1, done),
    {Count, seconds_since(Begin)}.

spawn_many(0, _, _) -> ok;
spawn_many(Count, Left, Parent) ->
    spawn(fun() -> receive _ -> count_down(Left, Parent) end end) ! Count,
    spawn_many(Count - 1, Left, Parent).

count_down(Left, Parent) ->
    case atomics:sub_get(Left, 1, 1) of
        0 -> Parent ! done;
        _ -> ok
    end.

skynet() ->
    Leaves = 1000000,
    Expected = Leaves * (Leaves - 1) div 2,
    Self = self(),
    settle(),
    Begin = now_ns(),
    spawn(fun() -> skynet(0, Leaves, Self) end),
    receive Expected -> {Leaves, seconds_since(Begin)} end.

skynet(First, 1, Parent) -> Parent ! First;
skynet(First, Leaves, Parent) ->
    Self = self(),
    Share = Leaves div 10,
    [spawn(fun() -> skynet(First + I * Share, Share, Self) end) || I <- lists:seq(0, 9)],
    Parent ! skynet_sum(10, 0).

skynet_sum(0, Sum) -> Sum;
skynet_sum(Left, Sum) -> receive Value -> skynet_sum(Left - 1, Sum + Value) end.

%% What gen:call does, without a gen_server's dispatch in the server.
ask() ->
    Count = 300000,
    Server = spawn_link(fun answer/0),
    settle(),
    Begin = now_ns(),
    ask(Server, Count),
    {Count, seconds_since(Begin)}.

ask(_, 0) -> ok;
ask(Server, Left) ->
    Monitor = erlang:monitor(process, Server),
    Server ! {Monitor, self(), Left},
    receive
        {Monitor, _} -> erlang:demonitor(Monitor, [flush]);
        {'DOWN', Monitor, _, _, Reason} -> exit(Reason)
    end,
    ask(Server, Left - 1).

answer() -> receive {Id, From, Value} -> From ! {Id, Value}, answer() end.

%% The sender is a process of the same node: Erlang has no foreign threads, so nothing has to be woken for it.
latency(Pairs) ->
    Messages = 500,
    Self = self(),
    Receiver = spawn_link(fun() -> note(Messages, [], Self) end),
    [spawn_link(fun() -> ping_start(spawn_link(fun pong/0), 1 bsl 59, Self) end) ! 1 || _ <- lists:seq(1, Pairs)],
    settle(),
    {CpuBefore, _} = statistics(runtime),
    Begin = now_ns(),
    send_one_per_millisecond(Messages, Receiver),
    receive {latencies, All} -> ok after 2000 -> Receiver ! report, receive {latencies, All} -> ok end end,
    Elapsed = seconds_since(Begin),
    {CpuAfter, _} = statistics(runtime),
    Sorted = lists:sort(All),
    Delivered = io_lib:format("\"delivered\": ~.4f", [length(Sorted) / Messages]),
    Cores = [io_lib:format(", \"cores\": ~.4f", [(CpuAfter - CpuBefore) / 1000 / Elapsed]) || Pairs =:= 0],
    Percentiles = [[", ", percentiles(Sorted)] || Sorted =/= []],
    [Delivered, Cores, Percentiles].

percentiles(Sorted) ->
    lists:join(", ", [
        io_lib:format("\"~s\": ~.3f", [Key, lists:nth(1 + trunc(Share * (length(Sorted) - 1)), Sorted) / 1000])
     || {Key, Share} <- [{"p50_us", 0.50}, {"p95_us", 0.95}, {"p99_us", 0.99}]
    ]).

send_one_per_millisecond(0, _) -> ok;
send_one_per_millisecond(Left, Receiver) ->
    timer:sleep(1),
    Receiver ! now_ns(),
    send_one_per_millisecond(Left - 1, Receiver).

note(0, Latencies, Parent) -> Parent ! {latencies, Latencies};
note(Left, Latencies, Parent) ->
    receive
        report -> Parent ! {latencies, Latencies};
        Sent -> note(Left - 1, [now_ns() - Sent | Latencies], Parent)
    end.

%% The other node, in a process of its own: it has the command line of this one but for its name, and goes with it.
start_server() ->
    {ok, [[Port]]} = init:get_argument(erl_epmd_port),
    {ok, [[Folder]]} = init:get_argument(pa),
    Schedulers = integer_to_list(erlang:system_info(schedulers)),
    open_port({spawn_executable, os:getenv("BINDIR") ++ "/erlexec"}, [
        {args, [
            "+S", Schedulers ++ ":" ++ Schedulers, "-noshell", "-pa", Folder, "-name", "there@127.0.0.1",
            "-setcookie", "peers", "-start_epmd", "false", "-erl_epmd_port", Port,
            "-run", "erlang_programs", "serve", atom_to_list(node())
        ]}
    ]),
    Node = 'there@127.0.0.1',
    connect(Node, 200),
    Node.

connect(Node, 0) ->
    io:format(standard_error, "erlang_programs: ~s does not answer~n", [Node]),
    erlang:halt(2);
connect(Node, Left) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> timer:sleep(50), connect(Node, Left - 1)
    end.

serve([Parent]) -> serve(list_to_atom(Parent), 200).
serve(Parent, Left) ->
    case {lists:member(Parent, nodes(connected)), Left} of
        {true, _} ->
            monitor_node(Parent, true),
            receive {nodedown, Parent} -> erlang:halt(0) end;
        {_, 0} -> erlang:halt(1);
        _ -> timer:sleep(50), serve(Parent, Left - 1)
    end.

remote_one_way(Node) ->
    Count = 500000,
    Sink = spawn_opt(Node, ?MODULE, consume, [Count, self()], [{message_queue_data, off_heap}]),
    settle(),
    Begin = now_ns(),
    produce(Count, Sink),
    await(1, done),
    {Count, seconds_since(Begin)}.

remote_round_trips(Node) ->
    Echo = spawn(Node, ?MODULE, echo, []),
    Echo ! self(),
    round_trips(Echo, 500, []),
    lists:sort(round_trips(Echo, 10000, [])).

round_trips(_, 0, Times) -> Times;
round_trips(Echo, Left, Times) ->
    Begin = now_ns(),
    Echo ! Left,
    receive Left -> round_trips(Echo, Left - 1, [now_ns() - Begin | Times]) end.

echo() -> receive Peer -> pong(Peer) end.
