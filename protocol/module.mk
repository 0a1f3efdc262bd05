PROTOCOL_SRCS := protocol/options.cc protocol/place.cc protocol/stage.cc
