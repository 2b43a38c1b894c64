from PIL import Image, ImageSequence
import time, io
from contact_id_controller.report import animation as A
im=Image.open("/tmp/w/st/animation.gif")
frames=[f.convert("RGB") for f in ImageSequence.Iterator(im)]
frames[60].save("/tmp/w/s16/f60.png")
for c in (128,64,40,24):
    A.COLOURS=c
    t=time.time(); b=io.BytesIO()
    pal=A._palette(frames); idx=[f.quantize(palette=pal,dither=0) for f in frames]
    idx[0].save(b,format="GIF",save_all=True,append_images=idx[1:],duration=50,loop=0)
    print(c,len(b.getvalue())/1e6,"MB",time.time()-t)
    idx[60].convert("RGB").save(f"/tmp/w/s16/f60_{c}.png")
