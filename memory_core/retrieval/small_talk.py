"""Phrases of everyday talk, which ask for nothing that a memory could know: the other side of every comparison.

A message is about something that the memory knows if a record is nearer to it than these phrases are.
"""

from __future__ import annotations

from typing import Final

PHRASES: Final = (
    "Hi", "Hello there, how are you?", "Hey!", "Good morning", "Good evening", "How are you doing today?", "Goodbye, see you soon",
    "Good night, sleep well", "Have a good day", "Nice to meet you", "I'm back again", "Are you there?", "What's new?",
    "Thanks", "Thank you very much, that was helpful", "Great, thanks!", "Cheers", "Please", "Sorry", "Oops, my mistake",
    "Ok", "Yes", "No", "Sure, sounds good", "All right", "I see, that makes sense", "Got it", "Fine", "Exactly", "No problem",
    "Hmm, maybe", "I don't know", "Not now, later", "Never mind, forget it", "Go on, tell me more", "Wait a moment", "Haha, lol", "Wow, great",
    "Really?", "Why?", "What do you mean?", "Interesting, good idea", "I agree", "That is all for now",
    "I'm bored and tired", "I feel great today", "What a day", "The weather is bad again", "Can you help me with something?",
    "Who are you?", "Are you a machine or a person?", "What can you do?", "I love you",
    "What is 3 times 4?", "9 + 5", "How much is 30 percent of 60?", "Is 13 a prime number? Add up 2, 3, 5 and 7",
    "Convert 10 kilograms to pounds", "How many minutes are in a week?", "What is the square root of 25?",
    "Tell me a joke about cats", "Tell me a funny story", "Sing a song", "Give me a riddle or a pun", "Tell me a fun fact about whales",
    "Write a poem about spring", "Translate 'thank you' into Spanish", "Translate the sentence into German",
    "Summarise this in two sentences", "Make it longer", "Rewrite the text in a formal tone", "Correct the grammar of this sentence",
    "Sort this list of words", "Give me another word for 'big'", "Explain gravity in simple words",
    "What is the capital of Canada?", "Who painted the Mona Lisa?", "Who invented the telephone?", "What does CPU mean?",
    "How do you spell necessary?", "Name five countries in Africa", "Pick a random card", "Roll a die", "Set an alarm for five minutes",
    "Write a function in Python that reverses a string", "Continue", "Repeat that, please", "Write it as a table or as a list", "Start again",
    "Hallo, wie geht es dir?", "Guten Tag", "Gute Nacht, bis bald", "Vielen Dank", "Danke schön", "Ja, gut", "Nein, okay",
    "Genau, alles klar", "Weiter, bitte", "Keine Ahnung", "Erzähl mir eine lustige Geschichte", "Was ist 3 mal 4?",
    "Wie heißt die Hauptstadt von Frankreich?", "Schreib das bitte anders", "Übersetze das ins Englische", "Mir geht es gut, ich bin müde",
    "Hola, ¿cómo estás?", "Buenas tardes", "Hasta luego", "Muchas gracias", "Sí, claro, vale", "No, está bien",
    "Cuéntame algo divertido", "¿Cuánto es 3 por 4?", "¿Cuál es la capital de Francia?", "Tradúcelo al inglés, por favor", "Estoy cansado",
    "Bonjour, comment ça va ?", "Bonsoir, bonne nuit", "Au revoir, à bientôt", "Merci bien", "Oui, d'accord", "Non, pas de problème",
    "Raconte-moi une histoire drôle", "Combien font 3 fois 4 ?", "Quelle est la capitale de l'Italie ?", "Traduis la phrase en anglais",
    "Ciao, come va?", "Buongiorno, buonanotte", "Grazie", "Sì, va bene", "Olá, tudo bem?", "Bom dia, boa noite", "Muito obrigado", "Sim, não",
    "Hoi, goedemorgen", "Dank u", "Ja hoor, prima", "Dzień dobry", "Dziękuję, dobrze", "Hej, tack", "Merhaba, teşekkürler",
    "Привет, как дела?", "Спасибо", "Да, хорошо", "Нет", "你好", "谢谢", "好的", "こんにちは", "ありがとう", "はい",
)
